"""Inputs: fresh, repeatable from a seed, as the contract says, and hostile in known ways."""

from __future__ import annotations

import hashlib
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelarc.guard import problems
from kernelarc.guard.errors import MalformedProblem
from kernelarc.guard.schema import ShapeRule
from kernelarc.guard.worker.inputs import FAMILIES, draw, families_for, neighbour_shapes, rule_for
from kernelarc.guard.worker.neighbours import MAX_ELEMENTS, at_shape, candidates, elements
from kernelarc.guard.worker.reference import Reference


def seed(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


@pytest.fixture(scope="session")
def one_input(make_problem):
    """A problem ``y = x`` with one input of the given rule."""

    def make(rule, *, dtype="float32", shape=(64, 96)):
        return make_problem(
            "def run(x):\n    return x\n",
            inputs={"x": (["M", "N"][: len(shape)], dtype)},
            outputs={"y": (["M", "N"][: len(shape)], dtype)},
            axes=dict(zip("MN", shape, strict=False)),
            contract={"inputs": {"x": rule}} if rule is not None else {},
        )

    return make


def drawn(problem, family="normal", number=0) -> torch.Tensor:
    return draw(problem, problem.workloads[0], family=family, seed=seed(number)).tensors["x"]


@pytest.mark.parametrize("name", problems.names())
def test_every_built_in_problem_is_drawn_as_declared_in_every_family(name):
    problem = problems.get(name)
    workload = problem.ranked("cpu")[0] if problem.ranked("cpu") else None
    if workload is None:
        base = problem.workloads[0]
        workload = at_shape(base, neighbour_shapes(problem, base, seed=seed(1), count=1)[0])
    for family in FAMILIES:
        inputs = draw(problem, workload, family=family, seed=seed(0))
        shapes = problem.input_shapes(workload)
        assert [n for n in shapes if n in inputs.tensors] == list(inputs.tensors)
        assert set(inputs.tensors) | set(inputs.scalars) == set(shapes)
        for key, tensor in inputs.tensors.items():
            assert tuple(tensor.shape) == shapes[key]
            assert str(tensor.dtype) == f"torch.{problem.definition.inputs[key].dtype.value}"
            assert tensor.is_contiguous()
            assert not tensor.is_floating_point() or bool(tensor.isfinite().all())


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_seeds_give_equal_bits_and_other_seeds_other_values(one_input, family):
    problem = one_input({})
    assert torch.equal(drawn(problem, family), drawn(problem, family))
    assert not torch.equal(drawn(problem, family), drawn(problem, family, number=1))


def test_drawing_leaves_the_global_random_state_alone(one_input):
    before = torch.get_rng_state()
    drawn(one_input({}))
    assert torch.equal(before, torch.get_rng_state())


def test_inputs_of_one_call_do_not_depend_on_each_other(make_problem):
    problem = make_problem(
        "def run(a, b):\n    return a + b\n",
        inputs={"a": (["N"], "float32"), "b": (["N"], "float32")},
        outputs={"y": (["N"], "float32")},
        axes={"N": 1000},
    )
    tensors = draw(problem, problem.workloads[0], family="normal", seed=seed(0)).tensors
    correlation = torch.corrcoef(torch.stack([tensors["a"], tensors["b"]]))[0, 1]
    assert abs(float(correlation)) < 0.15


def test_mean_and_scale_of_the_normal_family_change_from_call_to_call(one_input):
    """G2: the expected value of a mean over many normals is no answer."""
    problem = one_input({}, shape=(200, 200))
    means = [float(drawn(problem, number=k).mean()) for k in range(20)]
    scales = [float(drawn(problem, number=k).std()) for k in range(20)]
    # The standard error of a mean over 40,000 elements is 0.005 to 0.01.
    assert max(means) - min(means) > 0.1
    assert max(scales) / min(scales) > 1.5


def test_shifted_rows_are_far_up_or_down_and_differ_as_before(one_input):
    problem = one_input({"row_shift": 300.0}, shape=(400, 50))
    rows = drawn(problem, "shifted")
    assert set(rows.mean(1).div(300).round().tolist()) == {-1.0, 1.0}
    assert 0.8 < float(rows.std(1).mean()) < 1.2


def test_a_large_end_makes_products_of_rows_large_and_keeps_them_exact(one_input):
    problem = one_input({"row_end": 27.5}, shape=(400, 64))
    q, k = drawn(problem, "shifted"), drawn(problem, "shifted", number=1)
    assert set(q[:, -1].tolist()) == {-27.5, 27.5}
    assert torch.equal((q @ k.T).double(), q.double() @ k.double().T)


@pytest.mark.parametrize("name", ["softmax", "cross_entropy", "attn_causal_gqa", "router_topk"])
def test_logits_of_the_built_in_problems_overflow_a_plain_exponential(name):
    problem = problems.get(name)
    workload = problem.ranked("cpu")[0]
    tensors = draw(problem, workload, family="shifted", seed=seed(0)).tensors
    if "q" in tensors:
        scores = tensors["q"] @ tensors["k"].repeat_interleave(
            tensors["q"].shape[1] // tensors["k"].shape[1], 1
        ).transpose(-1, -2)
        logits = scores * tensors["q"].shape[-1] ** -0.5
    else:
        logits = next(iter(tensors.values()))
    assert torch.exp(logits).isinf().any()
    assert (torch.exp(logits) < torch.finfo(torch.float32).tiny).any()


def test_only_logits_are_shifted(one_input):
    problem = one_input({})
    assert "shifted" not in families_for(problem, problem.workloads[0])


def test_large_and_small_have_their_magnitudes(one_input):
    problem = one_input({"scale": 2.0})
    for number in range(5):
        assert 2 * 2 * 0.9 < float(drawn(problem, "large", number).std()) < 2 * 8 * 1.1
        assert float(drawn(problem, "small", number).std()) < 2 * 2**-8 * 1.1


def test_cancelling_sums_lose_their_leading_digits(one_input):
    problem = one_input({}, shape=(64, 4096))
    x = drawn(problem, "cancelling").double()
    assert float(x.sum(-1).square().mean() / x.square().sum(-1).mean()) < 0.3
    honest = drawn(problem, "small", 3).double()
    assert float(honest.sum(-1).square().mean() / honest.square().sum(-1).mean()) > 0.6


def test_cancelling_products_cancel_through_the_fan_in_axis():
    problem = problems.get("gemm")
    conditions = {}
    for family in ("large", "cancelling"):
        inputs = draw(problem, problem.ranked("cpu")[0], family=family, seed=seed(0))
        a, b = (t.double() for t in inputs.tensors.values())
        sums, sizes = a @ b.T, a.abs() @ b.abs().T
        conditions[family] = float(sizes.mean() / sums.square().mean().sqrt())
    assert conditions["cancelling"] > 1.5 * conditions["large"]


def test_structured_rows_are_structured_and_the_others_are_not(one_input):
    problem = one_input({}, shape=(32, 16))
    kinds = set()
    for number in range(40):
        x = drawn(problem, "structured", number)
        rows, rest = x[::2], x[1::2]
        assert len(rest.unique()) == rest.numel()
        kinds.add(
            (
                bool((rows.count_nonzero(-1) == 1).all()),
                bool((rows == rows[0]).all()),
                bool((rows == rows[:, :1]).all()),
                bool((rows[:, 8:] == 0).all()),
            )
        )
    # one-hot rows may happen to be alike in nothing else; each kind has its own mark
    assert len(kinds) >= 4
    assert all(any(kind) for kind in kinds)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_products_of_the_integer_family_are_exact(make_problem, dtype):
    problem = make_problem(
        "def run(a, b):\n    return a @ b\n",
        inputs={"a": (["M", "K"], dtype), "b": (["K", "N"], dtype)},
        outputs={"y": (["M", "N"], dtype)},
        axes={"M": 20, "K": 200, "N": 30},
        contract={"inputs": {"a": {"scale": 0.3}, "b": {"kind": "weight", "fan_in": "K"}}},
    )
    inputs = draw(problem, problem.workloads[0], family="integers", seed=seed(0))
    a, b = inputs.tensors["a"].float(), inputs.tensors["b"].float()
    assert torch.equal((a @ b).double(), a.double() @ b.double())
    assert 0.05 < float((a @ b).std()) < 5


RULES = st.sampled_from(
    [
        {},
        {"kind": "weight", "fan_in": "N"},
        {"kind": "norm_weight"},
        {"kind": "positive", "scale": 0.5},
        {"kind": "uniform", "low": "-1", "high": "2"},
        {"kind": "normal", "mean": 3.0, "scale": 0.1, "families": False},
    ]
)


@given(rule=RULES, family=st.sampled_from(FAMILIES), number=st.integers(0, 10**6))
@settings(max_examples=40)
def test_values_keep_the_bounds_of_their_kind(one_input, rule, family, number):
    problem = one_input(rule, shape=(40, 50))
    x = drawn(problem, family, number)
    assert bool(x.isfinite().all())
    match rule.get("kind", "normal"):
        case "positive":
            assert float(x.min()) > 0
        case "uniform":
            assert float(x.min()) >= -1
            assert float(x.max()) < 2
        case "norm_weight":
            assert 0.8 < float(x.mean()) < 1.7
            assert float(x.std()) > 0.01
        case "normal" if not rule.get("families", True):
            assert abs(float(x.mean()) - 3) < 0.05
            assert abs(float(x.std()) - 0.1) < 0.02


def test_bounded_integers_follow_their_expressions(make_problem):
    problem = make_problem(
        "def run(x):\n    return x\n",
        inputs={"x": (["T"], "int64")},
        outputs={"y": (["T"], "int64")},
        axes={"T": 50, "S": 60},
        contract={
            "inputs": {"x": {"kind": "integers", "low": "-1", "high": "S", "distinct": True}}
        },
    )
    for number in range(10):
        x = drawn(problem, number=number)
        assert x.dtype is torch.int64
        assert int(x.min()) >= -1
        assert int(x.max()) < 60
        assert len(x.unique()) == 50


def test_more_distinct_integers_than_there_are_is_an_error(one_input):
    problem = one_input(
        {"kind": "integers", "low": "0", "high": "10", "distinct": True}, dtype="int32"
    )
    with pytest.raises(MalformedProblem, match="6144 distinct integers"):
        drawn(problem)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int32", -1024, 1023), ("int8", -128, 127), ("bool", 0, 1)],
)
def test_integers_without_a_rule_span_the_usual_range(one_input, dtype, low, high):
    x = drawn(one_input(None, dtype=dtype, shape=(300, 100))).long()
    assert int(x.min()) >= low
    assert int(x.max()) <= high
    assert int(x.max()) - int(x.min()) > 0.9 * (high - low)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float16"])
def test_narrow_types_get_finite_values(one_input, dtype):
    problem = one_input({"scale": 30000.0}, dtype=dtype)
    for family in FAMILIES:
        assert bool(drawn(problem, family).float().isfinite().all())


def test_an_unknown_family_or_a_short_seed_is_refused(one_input):
    problem = one_input({})
    with pytest.raises(ValueError, match="unknown family 'huge'"):
        draw(problem, problem.workloads[0], family="huge", seed=seed(0))
    with pytest.raises(ValueError, match="32 bytes"):
        draw(problem, problem.workloads[0], family="normal", seed=b"short")


def test_safetensors_inputs_are_refused_with_the_reason(make_problem):
    problem = make_problem(
        "def run(x):\n    return x\n",
        inputs={"x": (["N"], "float32")},
        outputs={"y": (["N"], "float32")},
        axes={"N": 4},
        specs={"x": {"type": "safetensors", "path": "x.safetensors", "tensor_key": "x"}},
    )
    with pytest.raises(MalformedProblem, match="custom_inputs_entrypoint"):
        drawn(problem)


def test_scalars_come_from_the_workload():
    problem = problems.get("rmsnorm")
    workload = problem.ranked("cpu")[0]
    inputs = draw(problem, workload, family="normal", seed=seed(0))
    assert inputs.scalars == workload.scalars
    assert "eps" in inputs.scalars


# --- custom inputs -----------------------------------------------------------------------------

CUSTOM = """
import random
import torch

def make(axes, device):
    return {"x": torch.rand(axes["N"], device=device) + random.random(), "k": 3}

def run(x, k):
    return x * k
"""


@pytest.fixture
def custom(make_problem):
    def make(reference=CUSTOM):
        return make_problem(
            reference,
            inputs={"x": (["N"], "float32"), "k": (None, "int32")},
            outputs={"y": (["N"], "float32")},
            axes={"N": 100},
            specs={"x": {"type": "custom"}, "k": {"type": "custom"}},
            entry="make",
        )

    return make


def test_custom_inputs_repeat_with_the_seed_and_leave_random_states_alone(custom):
    problem = custom()
    states = torch.get_rng_state(), random.getstate()
    assert torch.equal(drawn(problem), drawn(problem))
    assert not torch.equal(drawn(problem), drawn(problem, number=1))
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    inputs = draw(problem, problem.workloads[0], family="normal", seed=seed(0))
    assert inputs.scalars == {"k": 3}
    assert families_for(problem, problem.workloads[0]) == ["normal"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"x": torch.rand(3), "k": 3}', r"'x' as torch.float32 \(3,\)"),
        ('{"x": torch.rand(100).double(), "k": 3}', "as torch.float64"),
        ('{"x": [1.0], "k": 3}', "'x' as list"),
        ('{"x": torch.rand(100)}', "returned"),
        ("None", "returned NoneType"),
    ],
)
def test_custom_inputs_that_are_not_as_declared_are_an_error(custom, body, words):
    source = (
        f"import torch\ndef make(axes, device):\n    return {body}\ndef run(x, k):\n    return x\n"
    )
    with pytest.raises(MalformedProblem, match=words):
        drawn(custom(source))


# --- families in use ---------------------------------------------------------------------------


def test_all_families_are_used_where_inputs_may_vary():
    problem = problems.get("softmax")
    assert families_for(problem, problem.ranked("cpu")[0]) == list(FAMILIES)


def test_only_normal_is_used_where_no_input_may_vary(one_input):
    for rule in ({"families": False}, {"kind": "uniform", "low": "0", "high": "1"}):
        problem = one_input(rule)
        assert families_for(problem, problem.workloads[0]) == ["normal"]


def test_a_family_without_a_finite_reference_is_left_out(make_problem):
    problem = make_problem(
        "import torch\ndef run(x):\n    return torch.exp(x)\n",
        inputs={"x": (["N"], "float16")},
        outputs={"y": (["N"], "float16")},
        axes={"N": 20000},
        contract={"inputs": {"x": {"scale": 1.0}}},
    )
    families = families_for(problem, problem.workloads[0])
    assert "large" not in families
    assert {"normal", "small"} <= set(families)


# --- rules for problems without a contract -----------------------------------------------------


def test_without_a_contract_names_decide_how_inputs_are_drawn(make_problem):
    shapes = {"x": ["M", "N"], "norm_weight": ["N"], "q_weight": ["N", "K"], "rstd": ["M"]}
    problem = make_problem(
        f"def run({', '.join(shapes)}):\n    return x\n",
        inputs={name: (shape, "float32") for name, shape in shapes.items()},
        outputs={"y": (["M", "N"], "float32")},
        axes={"M": 2, "N": 3, "K": 4},
    )
    kinds = {name: rule_for(problem, name).kind for name in shapes}
    assert kinds == {
        "x": "normal",
        "norm_weight": "norm_weight",
        "q_weight": "weight",
        "rstd": "positive",
    }
    assert rule_for(problem, "q_weight").fan_in == "K"


# --- hidden shapes -----------------------------------------------------------------------------

SHAPE_RULES = st.builds(
    lambda low, span, step: ShapeRule(low=low * step, high=(low + span) * step, multiple_of=step),
    st.integers(1, 50),
    st.integers(0, 2000),
    st.sampled_from([1, 2, 8, 64]),
)


@given(rule=SHAPE_RULES, size=st.integers(1, 10**5))
def test_candidate_sizes_obey_the_rule(rule, size):
    sizes = candidates(size, rule)
    assert sizes
    assert all(rule.low <= n <= rule.high and n % rule.multiple_of == 0 for n in sizes)


def test_candidate_sizes_include_one_off_odd_and_prime_ones():
    sizes = candidates(512, ShapeRule(low=1, high=4096))
    assert {511, 512, 513, 521, 257, 1, 2} <= set(sizes)


@pytest.mark.parametrize("name", problems.names())
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_hidden_shapes_are_new_allowed_cheap_and_repeatable(name, device):
    problem = problems.get(name)
    for workload in problem.ranked(device):
        shapes = neighbour_shapes(problem, workload, seed=seed(0), count=4)
        assert shapes == neighbour_shapes(problem, workload, seed=seed(0), count=4)
        assert len(shapes) == 4
        assert all(shapes.count(shape) == 1 for shape in shapes)
        for shape in shapes:
            assert all(shape != w.axes for w in problem.workloads)
            moved = at_shape(workload, shape)
            assert elements(problem, moved) <= MAX_ELEMENTS
            for axis, rule in problem.contract.shapes.items():
                assert rule.low <= shape[axis] <= rule.high
                assert shape[axis] % rule.multiple_of == 0


def test_a_hidden_shape_can_be_evaluated():
    problem = problems.get("attn_causal_gqa")
    base = problem.ranked("cpu")[0]
    (shape,) = neighbour_shapes(problem, base, seed=seed(3), count=1)
    inputs = draw(problem, at_shape(base, shape), family="normal", seed=seed(0))
    assert (
        Reference(problem).expected(inputs)["o"].shape
        == problem.output_shapes(at_shape(base, shape))["o"]
    )


def test_a_problem_without_shape_rules_has_no_hidden_shapes(one_input):
    problem = one_input({})
    assert neighbour_shapes(problem, problem.workloads[0], seed=seed(0), count=3) == []
