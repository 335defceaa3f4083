"""The reference: evaluated in float64, checked against its definition, isolated from its inputs."""

from __future__ import annotations

import pytest
import torch

from kernelarc.guard import problems
from kernelarc.guard.schema import Mutant
from kernelarc.guard.worker.inputs import draw
from kernelarc.guard.worker.reference import InvalidReference, Reference

SEED = bytes(range(32))


@pytest.fixture(scope="session")
def elementwise(make_problem):
    """A problem with one input and one output of equal shape ``[N]``."""

    def make(body, *, dtype="float32", out=None, n=64, tolerance=None):
        return make_problem(
            f"import torch\n\n\ndef run(x):\n{body}",
            inputs={"x": (["N"], dtype)},
            outputs={"y": (["N"], out or dtype)},
            axes={"N": n},
            tolerance=tolerance,
        )

    return make


def inputs_of(problem, family="normal"):
    return draw(problem, problem.workloads[0], family=family, seed=SEED)


def test_float_inputs_are_evaluated_in_float64(elementwise):
    problem = elementwise("    return torch.exp(x)\n")
    inputs = inputs_of(problem)
    expected = Reference(problem).expected(inputs)["y"]
    assert expected.dtype is torch.float64
    assert torch.equal(expected, torch.exp(inputs.tensors["x"].double()))
    assert inputs.tensors["x"].dtype is torch.float32


@pytest.mark.parametrize(
    "cast",
    [
        "x.float()",
        "x.to(torch.float32)",
        "x.to(dtype=torch.bfloat16)",
        "x.half()",
        "x.type(torch.float16)",
        "x + torch.zeros(x.shape, dtype=torch.float32) * torch.tensor(0.1)",
    ],
)
def test_casts_to_narrower_floats_are_widened(elementwise, cast):
    """References of foreign problems cast to float32, whose rounding would count as ours."""
    problem = elementwise(f"    wide = {cast}\n    return torch.exp(wide).to(x.dtype)\n")
    inputs = inputs_of(problem)
    expected = Reference(problem).expected(inputs)["y"]
    assert torch.equal(expected, torch.exp(inputs.tensors["x"].double()))


def test_numbers_made_by_the_reference_are_float64_and_the_default_comes_back(elementwise):
    problem = elementwise("    return x * torch.full((x.shape[0],), 0.1)\n")
    inputs = inputs_of(problem)
    expected = Reference(problem).expected(inputs)["y"]
    assert torch.equal(expected, inputs.tensors["x"].double() * 0.1)
    assert torch.get_default_dtype() is torch.float32


def test_rounding_to_eight_bits_is_part_of_the_problem(elementwise):
    body = "    return x.to(torch.float8_e4m3fn).to(x.dtype)\n"
    problem = elementwise(body)
    inputs = inputs_of(problem)
    rounded = inputs.tensors["x"].double().to(torch.float8_e4m3fn).double()
    assert torch.equal(Reference(problem).expected(inputs)["y"], rounded)


def test_the_declared_evaluation_is_what_eager_torch_gives(elementwise):
    problem = elementwise("    return torch.exp(x.float()).to(x.dtype)\n", dtype="bfloat16")
    inputs = inputs_of(problem)
    declared = Reference(problem).as_declared(inputs)["y"]
    assert declared.dtype is torch.bfloat16
    assert torch.equal(declared, torch.exp(inputs.tensors["x"].float()).bfloat16())


@pytest.mark.parametrize("method", ["expected", "as_declared"])
@pytest.mark.parametrize(
    "body",
    ["    return x.view(-1)\n", "    x.mul_(2)\n    return x\n", "    return x[:]\n"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_outputs_share_nothing_with_the_inputs_and_inputs_stay(elementwise, method, body, dtype):
    """G4: a candidate that overwrites its input must not change the kept answer."""
    problem = elementwise(body, dtype=dtype)
    inputs = inputs_of(problem)
    before = inputs.tensors["x"].clone()
    kept = getattr(Reference(problem), method)(inputs)["y"]
    assert torch.equal(inputs.tensors["x"], before)
    answer = kept.clone()
    inputs.tensors["x"].zero_()
    assert torch.equal(kept, answer)


@pytest.mark.parametrize(
    "result",
    ["a, b", "[a, b]", '{"lo": a, "hi": b}', '{"hi": b, "lo": a}'],
)
def test_outputs_come_in_the_order_of_the_definition(make_problem, result):
    problem = make_problem(
        f"def run(x):\n    a, b = x.amin(), x.amax()\n    return {result}\n",
        inputs={"x": (["N"], "float32")},
        outputs={"lo": ([], "float32"), "hi": ([], "float32")},
        axes={"N": 16},
    )
    inputs = inputs_of(problem)
    expected = Reference(problem).expected(inputs)
    assert list(expected) == ["lo", "hi"]
    assert expected["lo"] < expected["hi"]


def test_a_number_is_a_zero_dimensional_output(make_problem):
    problem = make_problem(
        "def run(x):\n    return float(x.sum())\n",
        inputs={"x": (["N"], "float64")},
        outputs={"y": ([], "float64")},
        axes={"N": 16},
    )
    assert Reference(problem).expected(inputs_of(problem))["y"].shape == ()


def test_integer_outputs_keep_their_declared_type_exactly(elementwise):
    problem = elementwise("    return x.argsort()\n", out="int64")
    inputs = inputs_of(problem)
    expected = Reference(problem).expected(inputs)["y"]
    assert expected.dtype is torch.int64
    assert torch.equal(expected, inputs.tensors["x"].argsort())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return x[:3]\n", r"shape \(3,\), not \(64,\)"),
        ("    return x, x\n", "returned 2 values"),
        ("    return {'z': x}\n", r"returned \['z'\]"),
        ("    return x > 0\n", "is torch.bool, declared torch.float32"),
        ("    return x / 0\n", "NaN and infinities are not accepted"),
        ("    return torch.log(-x.abs())\n", "NaN and infinities are not accepted"),
        ("    return x.abs().add(1) * 1e39\n", "ends at 3.403e"),
        ("    return x @ torch.zeros(3, 3)\n", "raised RuntimeError"),
        ("    return x.nothing\n", "raised AttributeError"),
        ("    raise KeyError('k')\n", "raised KeyError"),
    ],
)
def test_a_reference_that_breaks_its_definition_is_invalid(elementwise, body, words):
    problem = elementwise(body)
    with pytest.raises(InvalidReference, match=words):
        Reference(problem).expected(inputs_of(problem))


def test_an_integer_that_does_not_fit_is_invalid(elementwise):
    problem = elementwise("    return x.argsort() * 2**40\n", out="int32")
    with pytest.raises(InvalidReference, match=r"does not fit in torch\.int32"):
        Reference(problem).expected(inputs_of(problem))


def test_minus_infinity_is_valid_where_a_workload_says_so(elementwise):
    body = "    return torch.where(x > 0, x, -torch.inf)\n"
    refused = elementwise(body)
    with pytest.raises(InvalidReference):
        Reference(refused).expected(inputs_of(refused))
    allowed = elementwise(body, tolerance={"allow_negative_inf": True})
    expected = Reference(allowed).expected(inputs_of(allowed))["y"]
    assert 0 < int((expected == -torch.inf).sum()) < 64
    nan = elementwise("    return torch.log(x)\n", tolerance={"allow_negative_inf": True})
    with pytest.raises(InvalidReference):
        Reference(nan).expected(inputs_of(nan))


def test_the_declared_evaluation_must_have_the_declared_dtype(elementwise):
    problem = elementwise("    return x.float()\n", dtype="bfloat16")
    assert Reference(problem).expected(inputs_of(problem))["y"].dtype is torch.float64
    with pytest.raises(InvalidReference, match=r"torch\.float32, not torch\.bfloat16"):
        Reference(problem).as_declared(inputs_of(problem))


def test_a_source_that_does_not_load_is_invalid(elementwise):
    problem = elementwise("    return x\n\n\nundefined_name\n")
    with pytest.raises(InvalidReference, match="does not load: NameError"):
        Reference(problem)


def test_a_missing_function_is_invalid(elementwise):
    with pytest.raises(InvalidReference, match="no function 'make'"):
        Reference(elementwise("    return x\n")).function("make")


def test_references_keep_their_module_state_to_themselves(elementwise):
    first = Reference(elementwise("    return x * FACTOR\n\n\nFACTOR = 2.0\n"))
    second = elementwise("    return x * FACTOR\n\n\nFACTOR = 3.0\n")
    inputs = inputs_of(second)
    assert torch.equal(first.expected(inputs)["y"] * 1.5, Reference(second).expected(inputs)["y"])


def test_a_mutant_differs_where_its_text_was_replaced(elementwise):
    problem = elementwise("    return x * 2 + 1\n")
    reference, inputs = Reference(problem), inputs_of(problem)
    mutant = reference.mutant(Mutant(name="drop:one", replace=[(" + 1", "")]))
    assert torch.equal(mutant.expected(inputs)["y"] + 1, reference.expected(inputs)["y"])
    with pytest.raises(InvalidReference, match="occurs 0 times"):
        reference.mutant(Mutant(name="absent", replace=[("gone", "")]))


@pytest.mark.parametrize("name", problems.names())
def test_built_in_references_evaluate_at_every_cpu_workload(name):
    problem = problems.get(name)
    reference = Reference(problem)
    for workload in problem.ranked("cpu"):
        inputs = draw(problem, workload, family="normal", seed=SEED)
        expected, declared = reference.expected(inputs), reference.as_declared(inputs)
        assert list(expected) == list(declared) == list(problem.definition.outputs)
