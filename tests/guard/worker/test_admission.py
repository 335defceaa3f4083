"""The gate for problems: tolerances that accept a wrong answer keep the problem out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard import problems
from kernelarc.guard.worker.admission import HONEST, admit
from kernelarc.guard.worker.emulation import (
    rounded,
    with_rounded_inputs,
    with_rounded_products,
)
from kernelarc.guard.worker.inputs import draw
from kernelarc.guard.worker.reference import Reference

SEED = bytes(range(32))


def silent(phase: str, done: int, total: int) -> None:
    """No one watches."""


def report(problem, device="cpu"):
    return admit(problem, device, seed=SEED, progress=silent)


def refused(result) -> dict[str, bool]:
    return {check.name: check.refused for check in result.checks}


@pytest.fixture(scope="session")
def scaled(make_problem):
    """``y = w * x`` with the given tolerance and contract parts."""

    def make(tolerance, reference="def run(x, w):\n    return x * w\n", **contract):
        return make_problem(
            reference,
            inputs={"x": (["M", "N"], "float32"), "w": (["N"], "float32")},
            outputs={"y": (["M", "N"], "float32")},
            axes={"M": 64, "N": 48},
            contract={
                "inputs": {"x": {}, "w": {"kind": "norm_weight"}},
                "outputs": {"y": tolerance},
                **contract,
            },
        )

    return make


TIGHT = {"rtol": 1e-6, "atol_rms": 1e-6}
FORBIDDEN = {"compute": "float32", "forbidden": ["float16", "bfloat16", "tfloat32"]}
DROP_WEIGHT = {"name": "drop:weight", "replace": [["x * w", "x"]]}


def test_a_tight_problem_is_admitted_and_every_wrong_answer_is_listed(scaled):
    result = report(scaled(TIGHT, precision=FORBIDDEN, mutants=[DROP_WEIGHT]))
    assert result.admitted
    assert refused(result) == {
        HONEST: False,
        "zeros": True,
        "ones": True,
        "mean": True,
        "copy:x": True,
        "float16 inputs": True,
        "bfloat16 inputs": True,
        "tfloat32 inputs": True,
        "drop:weight": True,
    }
    details = {check.name: check.detail for check in result.checks}
    assert "right everywhere" in details[HONEST]
    assert "refused by cancelling, integers, large, normal, small, structured" in details["zeros"]
    assert "PRECISION" in details["bfloat16 inputs"]


def test_a_tolerance_wide_enough_for_a_dropped_weight_is_refused(scaled):
    """The weight is around one: dropping it is an error of ten per cent."""
    result = report(scaled({"rtol": 0.5, "atol_rms": 0.5}, mutants=[DROP_WEIGHT]))
    assert not result.admitted
    assert not refused(result)["drop:weight"]
    assert not refused(result)["copy:x"]
    assert refused(result)["ones"]


def test_a_tolerance_wide_enough_for_lower_precision_is_refused(scaled):
    result = report(scaled({"rtol": 1e-3, "atol_rms": 1e-3}, precision=FORBIDDEN))
    assert not result.admitted
    assert not refused(result)["float16 inputs"]
    assert refused(result)["bfloat16 inputs"]
    (detail,) = [c.detail for c in result.checks if c.name == "float16 inputs"]
    assert detail.startswith("accepted in every family of workload w")


def test_a_tolerance_that_refuses_the_honest_answer_is_refused(scaled):
    softened = "import torch\ndef run(x, w):\n    return torch.tanh(x * w)\n"
    result = report(scaled({"rtol": 0.0, "atol_rms": 1e-9}, softened))
    assert not result.admitted
    assert refused(result)[HONEST]
    assert result.checks[0].detail.startswith("refused: normal")


def test_zeros_that_an_absolute_tolerance_would_accept_are_refused(make_problem):
    """C4: the mean of many small numbers against 1e-2, the usual default of other harnesses."""
    small = make_problem(
        "import torch\ndef run(x):\n    return torch.softmax(x, -1)\n",
        inputs={"x": (["M", "N"], "float32")},
        outputs={"y": (["M", "N"], "float32")},
        axes={"M": 8, "N": 2000},
        tolerance={"max_atol": 1e-2, "max_rtol": 1e-2},
    )
    assert report(small).admitted
    absolute = small.model_copy(
        update={
            "contract": small.contract.model_validate(
                {"outputs": {"y": {"rtol": 0.01, "atol_rms": 0, "atol": 1.0}}}
            )
        }
    )
    result = report(absolute)
    assert not result.admitted
    assert not refused(result)["zeros"]
    assert not refused(result)["mean"]


def test_a_constant_output_is_refused(make_problem):
    """C3: the true output is zero whatever the input, so a memset would be right."""
    problem = make_problem(
        "def run(x):\n    return (x - x.amax(-1, keepdim=True)).clamp(min=0)\n",
        inputs={"x": (["M", "N"], "float32")},
        outputs={"y": (["M", "N"], "float32")},
        axes={"M": 8, "N": 20},
        contract={"outputs": {"y": TIGHT}},
    )
    result = report(problem)
    assert not result.admitted
    assert not refused(result)["zeros"]


def test_outputs_are_tested_one_at_a_time(make_problem):
    """A wide tolerance on one output does not hide behind a tight one on another."""
    problem = make_problem(
        "def run(x):\n    return x * 3, x.argsort(-1)\n",
        inputs={"x": (["M", "N"], "float32")},
        outputs={"y": (["M", "N"], "float32"), "order": (["M", "N"], "int64")},
        axes={"M": 16, "N": 20},
        contract={"outputs": {"y": {"rtol": 1.0, "atol_rms": 1e-6}}},
    )
    found = refused(report(problem))
    assert not found["zeros in y"]
    assert found["zeros in order"]
    assert found["mean in order"]
    assert found["copy:x in order"]


def test_bool_outputs_have_their_wrong_answers(make_problem):
    problem = make_problem(
        "def run(x, mask):\n    return mask & (x > 0)\n",
        inputs={"x": (["N"], "float32"), "mask": (["N"], "bool")},
        outputs={"y": (["N"], "bool")},
        axes={"N": 200},
    )
    result = report(problem)
    assert result.admitted
    assert {"zeros", "ones", "mean", "copy:mask", "copy:x"} <= set(refused(result))


def test_every_workload_must_refuse(scaled):
    """A mutant that only differs beyond column 40 is invisible in a narrow workload."""
    mutant = {"name": "drop:tail", "replace": [["x * w", "x * w * (w.cumsum(-1) < 30)"]]}
    wide = scaled(TIGHT, mutants=[mutant])
    assert report(wide).admitted
    narrow = wide.workloads[0].model_copy(update={"axes": {"M": 64, "N": 8}, "uuid": "narrow"})
    result = report(wide.model_copy(update={"workloads": (*wide.workloads, narrow)}))
    assert not result.admitted
    (detail,) = [c.detail for c in result.checks if c.name == "drop:tail"]
    assert "workload narrow" in detail


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("def run(x, w):\n    return x\n\n\nmissing\n", "does not load"),
        ("def run(x, w):\n    return x / 0\n", "NaN and infinities"),
        ("def run(x, w):\n    return x.double() * w\n", "float64, not torch.float32"),
    ],
)
def test_an_invalid_reference_is_reported_not_raised(scaled, reference, words):
    result = report(scaled(TIGHT, reference))
    assert not result.admitted
    assert words in result.checks[0].detail


def test_a_problem_without_workloads_for_the_device_is_not_admitted(scaled):
    result = report(scaled(TIGHT, devices={"w": ["gpu"]}))
    assert not result.admitted
    assert "no workload that is ranked on cpu" in result.checks[0].detail


def test_equal_seeds_give_equal_reports_and_progress_ends_complete(scaled):
    problem = scaled(TIGHT, precision=FORBIDDEN, mutants=[DROP_WEIGHT])
    calls: list[tuple[str, int, int]] = []
    first = admit(problem, "cpu", seed=SEED, progress=lambda *call: calls.append(call))
    assert first == report(problem)
    assert calls == [("admission", done, 6) for done in range(7)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in problems.names() if problems.get(n).ranked("cpu")])
def test_every_built_in_problem_is_admitted(name):
    result = report(problems.get(name))
    wrong = [c for c in result.checks if c.refused == (c.name == HONEST)]
    assert wrong == []
    assert result.admitted


# --- emulation of lower precision --------------------------------------------------------------

FLOATS = st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False)


@given(FLOATS)
def test_tfloat32_keeps_ten_bits_and_rounds_to_the_nearest(value):
    x = torch.tensor(value, dtype=torch.float32)
    result = rounded(x, "tfloat32")
    assert int(result.view(torch.int32)) & 0x1FFF == 0
    assert abs(float(result) - value) <= abs(value) * 2.0**-11
    assert torch.equal(rounded(result, "tfloat32"), result)
    assert torch.equal(rounded(-x, "tfloat32"), -result)


def test_tfloat32_ties_go_to_the_even_neighbour():
    one = torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-23])
    expected = torch.tensor([1.0, 1 + 2 * 2.0**-10, 1 + 2.0**-10])
    assert torch.equal(rounded(one, "tfloat32"), expected)


@given(FLOATS)
def test_rounding_to_a_torch_type_is_torch_s_own_within_its_range(value):
    x = torch.tensor(value, dtype=torch.float32)
    assert torch.equal(rounded(x, "bfloat16"), x.bfloat16().float())
    assert torch.equal(rounded(x, "float16"), x.clamp(-65504, 65504).half().float())


def test_integers_are_not_rounded():
    x = torch.tensor([2**30 + 1])
    assert rounded(x, "bfloat16") is x


def test_products_are_rounded_where_the_reference_has_them_and_only_there():
    for name, product in (("gemm", True), ("attn_causal_gqa", True), ("softmax", False)):
        problem = problems.get(name)
        reference = Reference(problem)
        inputs = draw(problem, problem.ranked("cpu")[0], family="normal", seed=SEED)
        honest = reference.as_declared(inputs)
        products = with_rounded_products(reference, inputs, "bfloat16")
        narrow = with_rounded_inputs(reference, inputs, "bfloat16")
        assert (products is not None) == product
        for output, value in honest.items():
            assert not torch.equal(value, narrow[output])
            assert products is None or not torch.equal(value, products[output])


def test_rounded_operands_of_a_plain_product_are_rounded_inputs():
    problem = problems.get("gemm")
    reference = Reference(problem)
    inputs = draw(problem, problem.ranked("cpu")[0], family="normal", seed=SEED)
    products = with_rounded_products(reference, inputs, "tfloat32")
    assert products is not None
    assert torch.equal(products["c"], with_rounded_inputs(reference, inputs, "tfloat32")["c"])
