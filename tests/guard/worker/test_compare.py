"""The tolerance: what passes, what fails, and with which words."""

from __future__ import annotations

import math
import resource

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelarc.guard.schema import EvaluationStatus, OutputTolerance, ToleranceSpec
from kernelarc.guard.worker import scan as scan_module
from kernelarc.guard.worker.compare import Comparison, compare, merge
from kernelarc.guard.worker.emulation import rounded
from kernelarc.guard.worker.scan import root_mean_square, scan_floats
from kernelarc.guard.worker.tolerance import Tolerance

TIGHT = {"rtol": 1e-5, "atol_rms": 1e-5}


@pytest.fixture(scope="session")
def check(make_problem):
    """Compare one output with a reference under a tolerance."""

    def run(expected, got, poison=None, *, inputs=None, dtype=None, contract=None, spec=None):
        names = [f"D{k}" for k in range(expected.dim())]
        dtype = dtype or str(got.dtype).removeprefix("torch.")
        problem = make_problem(
            "def run(x):\n    return x\n",
            inputs={"x": (names, dtype)},
            outputs={"y": (names, dtype)},
            axes=dict(zip(names, expected.shape, strict=True)),
            contract=None if spec is not None else {"outputs": {"y": contract or TIGHT}},
            tolerance=spec,
        )
        return compare(
            problem,
            problem.workloads[0],
            {"y": expected},
            {"y": got},
            None if poison is None else {"y": poison},
            inputs=inputs,
        )

    return run


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def status(comparison: Comparison) -> EvaluationStatus:
    return comparison.failure.status if comparison.failure else EvaluationStatus.PASSED


# --- the tolerance as mathematics --------------------------------------------------------------

SMALL = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=12)
RULES = st.builds(
    Tolerance,
    rtol=st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
    atol_rms=st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
)


def vectors(data, count=2):
    expected = torch.tensor(data.draw(SMALL), dtype=torch.float64)
    others = [
        torch.tensor(
            data.draw(
                st.lists(st.floats(-1, 1), min_size=expected.numel(), max_size=expected.numel())
            ),
            dtype=torch.float64,
        )
        for _ in range(count - 1)
    ]
    return expected, *others


@given(st.data(), RULES)
def test_a_larger_error_never_passes_where_a_smaller_one_failed(data, rule):
    expected, error = vectors(data)
    counts = [
        scan_floats(expected, expected + factor * error, None, rule).mismatched
        for factor in (0.0, 1e-7, 1e-4, 1e-2, 1.0, 1e3)
    ]
    assert counts[0] == 0
    assert counts == sorted(counts)


@given(st.data(), RULES, st.integers(-40, 40))
def test_scaling_both_sides_by_a_power_of_two_changes_nothing(data, rule, power):
    expected, error = vectors(data)
    got = expected + 1e-3 * error
    plain = scan_floats(expected, got, None, rule)
    scaled = scan_floats(expected * 2.0**power, got * 2.0**power, None, rule)
    assert scaled.mismatched == plain.mismatched
    assert scaled.first == plain.first
    assert scaled.max_rel == plain.max_rel


@given(st.data(), RULES)
def test_the_order_of_the_elements_does_not_matter(data, rule):
    expected, error = vectors(data)
    got = expected + 1e-3 * error
    order = torch.tensor(data.draw(st.permutations(range(expected.numel()))))
    one = scan_floats(expected, got, None, rule)
    # The rms is summed in another order; a bound that is met to the last bit may flip.
    near = Tolerance(rtol=rule.rtol * (1 + 1e-12), atol_rms=rule.atol_rms * (1 + 1e-12))
    other = scan_floats(expected[order], got[order], None, near)
    assert other.mismatched <= one.mismatched
    assert scan_floats(expected[order], got[order], None, rule).max_abs == one.max_abs


SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -3.5, math.inf, -math.inf, math.nan])


@given(st.lists(st.tuples(SPECIAL, SPECIAL), min_size=1, max_size=8))
def test_an_element_passes_only_in_its_own_class(pairs):
    """NaN is no wildcard on either side, and an infinity matches itself only."""
    expected = torch.tensor([e for e, _ in pairs], dtype=torch.float64)
    got = torch.tensor([g for _, g in pairs], dtype=torch.float32)
    # Wide enough for any finite pair, so that only the classes decide.
    rule = Tolerance(rtol=0.0, atol_rms=0.0, atol_fixed=100.0)
    wrong = [
        k
        for k, (e, g) in enumerate(pairs)
        if not ((math.isfinite(e) and math.isfinite(g)) or e == g or (e != e and g != g))
    ]
    findings = scan_floats(expected, got, None, rule)
    assert findings.mismatched == findings.nonfinite == len(wrong)
    assert findings.first == wrong[:3]


@given(st.data(), st.integers(1, 5))
@settings(max_examples=50)
def test_chunks_do_not_change_what_is_found(data, chunk):
    expected, error = vectors(data)
    got = (expected + 1e-2 * error).float()
    poison = got.clone()
    rule = Tolerance(rtol=1e-4, atol_rms=1e-4, matched_ratio=0.5, block_rows=3)
    whole = scan_floats(expected, got, poison, rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "CPU_CHUNK", chunk)
        pieces = scan_floats(expected, got, poison, rule)
    for field in ("mismatched", "unwritten", "first", "max_abs", "max_rel", "densest_block"):
        assert getattr(pieces, field) == getattr(whole, field)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.999, 0.99, 0.98, 0.95, 0.9, 0.5]))
def test_the_allowed_share_is_exact(elements, ratio):
    permille = round((1 - ratio) * 1000)
    assert Tolerance(0.0, 0.0, matched_ratio=ratio).allowed(elements) == elements * permille // 1000


@given(st.lists(st.floats(-1e3, 1e3), max_size=20))
def test_the_rms_ignores_what_is_not_finite(values):
    finite = torch.tensor(values, dtype=torch.float64)
    mixed = torch.cat([finite, torch.tensor([math.inf, math.nan, -math.inf]).double()])
    assert root_mean_square(mixed) == pytest.approx(root_mean_square(finite), rel=1e-12)


def test_a_workload_tolerance_is_never_wider_than_sol_execbench_and_scales_with_small_outputs():
    rule = Tolerance.of_workload(ToleranceSpec(max_atol=1e-2, max_rtol=1e-2))
    assert rule.atol(rms=50.0) == 1e-2
    assert rule.atol(rms=1e-6) == pytest.approx(1e-8)


def test_a_contract_may_add_an_absolute_term():
    rule = Tolerance.of_contract(OutputTolerance(rtol=0, atol_rms=0.5, atol=1.0))
    assert rule.atol(rms=4.0) == 3.0


# --- verdicts ----------------------------------------------------------------------------------


def test_a_float32_answer_passes_and_its_errors_are_reported(check):
    expected = normal(64, 32)
    result = check(expected, expected.float())
    assert result.passed
    assert 0 < result.correctness.max_absolute_error < 1e-6
    assert 0 < result.correctness.max_relative_error < 1e-7
    assert result.correctness.mismatched == 0
    assert result.correctness.total == 64 * 32


def test_zeros_fail_however_small_the_expected_output_is(check):
    """G1: softmax over many columns is of order 1e-6, far below an absolute tolerance."""
    expected = torch.softmax(normal(4, 100_000), dim=-1)
    zeros = torch.zeros(4, 100_000)
    for options in ({}, {"spec": {"max_atol": 1e-2, "max_rtol": 1e-2}}):
        failed = check(expected, zeros, **options)
        assert status(failed) is EvaluationStatus.INCORRECT_NUMERICAL
        assert "all zeros" in failed.failure.message
        assert check(expected, expected.float(), **options).passed


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_special_value_among_finite_ones_is_nonfinite(check, value):
    """G13: a comparison with NaN is false, so a checker that looks for errors > bound passes it."""
    expected = normal(300, 1000)
    got = expected.float()
    got[250, 3] = value
    failed = check(expected, got)
    assert status(failed) is EvaluationStatus.NONFINITE
    assert "[250, 3]" in failed.failure.message


def test_expected_infinities_and_nan_must_be_matched_and_may_be(check):
    """G24: log-sum-exp of an empty row is -inf, and an honest kernel gives it."""
    expected = normal(8, 8)
    expected[0, 0], expected[1, 1], expected[2, 2] = -math.inf, math.inf, math.nan
    honest = expected.float()
    assert check(expected, honest).passed
    for row, value in ((0, math.inf), (1, 0.0), (2, 0.0), (0, -3.4e38)):
        wrong = honest.clone()
        wrong[row, row] = value
        assert status(check(expected, wrong)) is EvaluationStatus.NONFINITE


def test_unwritten_elements_are_stale_even_where_the_ratio_would_forgive_them(check):
    expected = normal(100, 100)
    poison = normal(100, 100, seed=1).float()
    got = expected.float()
    got[97:, 90:] = poison[97:, 90:]
    lenient = {**TIGHT, "matched_ratio": 0.9}
    failed = check(expected, got, poison, contract=lenient)
    assert status(failed) is EvaluationStatus.STALE_OUTPUT
    assert "30 of 10000" in failed.failure.message
    assert "[97, 90], [97, 91], [97, 92]" in failed.failure.message
    # The twin: as many wrong elements that were written.
    got[97:, 90:] = expected[97:, 90:].float() * (1 + 3e-5)
    assert check(expected, got, poison, contract=lenient).passed


def test_a_right_element_that_equals_the_poison_is_right(check):
    expected = normal(16, 16)
    poison = expected.float()
    assert check(expected, expected.float(), poison).passed


def test_a_wrong_int8_output_that_meets_the_poison_by_chance_is_not_called_unwritten(check):
    generator = torch.Generator().manual_seed(5)
    shape = (100, 100)
    expected = torch.randint(0, 100, shape, generator=generator, dtype=torch.int8)
    poison = torch.randint(-128, 127, shape, generator=generator, dtype=torch.int8)
    got = torch.randint(-128, -1, shape, generator=generator, dtype=torch.int8)
    assert status(check(expected, got, poison)) is EvaluationStatus.INCORRECT_NUMERICAL
    assert status(check(expected, poison, poison)) is EvaluationStatus.STALE_OUTPUT


def test_integers_are_compared_exactly_beyond_what_floats_hold(check):
    expected = torch.tensor([2**53, 2**53 + 1, 5])
    assert check(expected, expected.clone()).passed
    failed = check(expected, torch.tensor([2**53, 2**53, 5]))
    assert status(failed) is EvaluationStatus.INCORRECT_NUMERICAL
    assert "[1] got 9007199254740992 expected 9007199254740993" in failed.failure.message


def test_a_bool_is_compared_as_a_byte(check):
    expected = torch.tensor([True, False, True])
    assert check(expected, expected.clone()).passed
    two = torch.tensor([1, 0, 2], dtype=torch.uint8).view(torch.bool)
    failed = check(expected, two)
    assert status(failed) is EvaluationStatus.INCORRECT_NUMERICAL
    assert "[2] got 2 expected 1" in failed.failure.message


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16])
def test_narrow_float_outputs_are_widened_before_they_are_compared(check, dtype):
    expected = normal(32, 32).clamp(-2, 2)
    got = expected.to(dtype)
    rule = {"rtol": torch.finfo(dtype).eps / 2, "atol_rms": 1e-2}
    assert check(expected, got, contract=rule).passed
    assert not check(expected, torch.zeros_like(got), contract=rule).passed


def test_shape_dtype_and_presence_are_checked_first(check, make_problem):
    expected = normal(4, 6)
    wrong_shape = check(expected, expected.float().reshape(6, 4), dtype="float32")
    assert status(wrong_shape) is EvaluationStatus.INCORRECT_SHAPE
    assert "[6, 4], not [4, 6]" in wrong_shape.failure.message
    wrong_dtype = check(expected, expected.half(), dtype="float32")
    assert status(wrong_dtype) is EvaluationStatus.INCORRECT_DTYPE
    assert "float16, not float32" in wrong_dtype.failure.message
    problem = make_problem(
        "def run(x):\n    return x, x\n",
        inputs={"x": (["N"], "float32")},
        outputs={"y": (["N"], "float32"), "z": (["N"], "float32")},
        axes={"N": 4},
    )
    both = {"y": normal(4), "z": normal(4, seed=1)}
    missing = compare(problem, problem.workloads[0], both, {"y": both["y"].float()})
    assert status(missing) is EvaluationStatus.INCORRECT_SHAPE
    assert "'z' is missing" in missing.failure.message


def test_every_output_is_compared_and_the_counts_add_up(make_problem):
    """G20: a checker that looks at the first output only."""
    problem = make_problem(
        "def run(x):\n    return x, x\n",
        inputs={"x": (["N"], "float32")},
        outputs={"y": (["N"], "float32"), "z": (["N"], "float32")},
        axes={"N": 50},
        contract={"outputs": {"y": TIGHT, "z": TIGHT}},
    )
    expected = {"y": normal(50), "z": normal(50, seed=1)}
    got = {name: value.float() for name, value in expected.items()}
    assert compare(problem, problem.workloads[0], expected, got).passed
    got["z"] = torch.zeros(50)
    failed = compare(problem, problem.workloads[0], expected, got)
    assert failed.failure.message.startswith("output 'z'")
    assert failed.correctness.total == 100
    assert failed.correctness.mismatched == 50


def test_empty_and_zero_dimensional_outputs_are_compared(check):
    assert check(torch.empty(0, 4, dtype=torch.float64), torch.empty(0, 4)).passed
    one = torch.tensor(2.0, dtype=torch.float64)
    assert check(one, torch.tensor(2.0)).passed
    assert "[] got 3 expected 2" in check(one, torch.tensor(3.0)).failure.message


def test_an_expected_output_of_zeros_accepts_zeros_only(check):
    expected = torch.zeros(4, 4, dtype=torch.float64)
    assert check(expected, -torch.zeros(4, 4)).passed
    assert not check(expected, torch.full((4, 4), 1e-30)).passed


# --- the matched ratio -------------------------------------------------------------------------

LENIENT = {"rtol": 1e-3, "atol_rms": 1e-3, "matched_ratio": 0.99}


def scattered(expected: torch.Tensor, count: int, factor: float) -> torch.Tensor:
    got = expected.clone().flatten()
    where = torch.randperm(got.numel(), generator=torch.Generator().manual_seed(9))[:count]
    got[where] += factor * expected.square().mean().sqrt()
    return got.reshape(expected.shape).float()


def test_a_few_scattered_elements_slightly_outside_are_forgiven(check):
    expected = normal(512, 64)
    assert check(expected, scattered(expected, 200, 5e-3), contract=LENIENT).passed
    failed = check(expected, scattered(expected, 400, 5e-3), contract=LENIENT)
    assert "400 of 32768" in failed.failure.message
    assert "where 1 % may be" in failed.failure.message


def test_a_lost_tile_does_not_hide_in_the_ratio(check):
    """As many wrong elements as above, and as slightly wrong, but side by side."""
    expected = normal(512, 64)
    got = expected.float()
    got[64:68, :50] += 5e-3
    for rows in (None, 32):
        failed = check(expected, got, contract={**LENIENT, "block_rows": rows})
        assert status(failed) is not EvaluationStatus.PASSED
        assert "200 of them in one block of" in failed.failure.message


def test_an_element_that_is_far_off_is_not_forgiven(check):
    expected = normal(512, 64)
    failed = check(expected, scattered(expected, 3, 0.5), contract=LENIENT)
    assert "more than 10 times" in failed.failure.message


def test_the_workload_error_cap_is_kept(check):
    expected = normal(512, 64)
    spec = {"max_atol": 1e-2, "max_rtol": 1e-2}
    got = scattered(expected, 3, 5e-2)
    assert check(expected, got, spec=spec).passed
    failed = check(expected, got, spec={**spec, "max_error_cap": 2e-2})
    assert "the cap of 0.02" in failed.failure.message


# --- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e * 0.5, "0.5 times the expected one"),
        (lambda e: e + 3.0, "off by about 3"),
        (lambda e: torch.full_like(e, 7.0), "every element of the output is 7"),
        (lambda e: e.T.reshape(48, 96).contiguous(), "transposed"),
        (lambda e: _with(e, (slice(None), slice(90, None))), "the last 6 of 96 columns"),
        (lambda e: _with(e, (slice(40, None), slice(None))), "the last 8 of 48 rows"),
        (lambda e: _with(e, (slice(0, 16), slice(None))), "the first 16 of 48 rows"),
        (lambda e: _with(e, (slice(16, 32), slice(0, 4))), "rows 16 to 31 of 48"),
        (lambda e: _with(e, (slice(None, None, 2), slice(None))), "24 of 48 rows"),
    ],
)
def test_a_recognisable_pattern_is_named(check, change, words):
    expected = normal(48, 96)
    failed = check(expected, change(expected).float())
    assert status(failed) is EvaluationStatus.INCORRECT_NUMERICAL
    assert words in failed.failure.message


def _with(expected: torch.Tensor, where: tuple[slice, slice]) -> torch.Tensor:
    got = expected.clone()
    got[where] = normal(*got[where].shape, seed=4)
    return got


def test_a_copy_of_an_input_is_named(check):
    x = normal(20, 30, seed=2).float()
    failed = check(normal(20, 30), x.clone(), inputs={"x": x})
    assert "copy of the input 'x'" in failed.failure.message


def test_the_message_is_short_rounded_and_repeats(check):
    expected = normal(64, 64)
    got = expected.float()
    got[3, 5] = 123456.789
    texts = {check(expected, got).failure.message for _ in range(3)}
    (text,) = texts
    assert "1 of 4096 elements (0.0244 %)" in text
    assert f"[3, 5] got 1.235e+05 expected {expected[3, 5]:.4g}" in text
    assert "largest absolute error 1.23e+05" in text
    assert len(text) < 400


# --- precision ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "words"),
    [
        ("bfloat16", "bfloat16 arithmetic"),
        ("float16", "tfloat32 or float16 arithmetic"),
        ("tfloat32", "tfloat32 or float16 arithmetic"),
    ],
)
@pytest.mark.parametrize("kind", ["product", "elementwise"])
def test_errors_of_a_lower_precision_are_reported_as_such(check, precision, words, kind):
    """G6: a float32 problem that was computed on narrow operands."""
    a, b = normal(96, 256).float(), normal(256, 80, seed=1).float()
    if kind == "product":
        expected = a.double() @ b.double()
        honest, narrow = a @ b, rounded(a, precision) @ rounded(b, precision)
    else:
        expected = torch.tanh(a.double()) * 3
        honest, narrow = torch.tanh(a) * 3, torch.tanh(rounded(a, precision)) * 3
    assert check(expected, honest).passed
    failed = check(expected, narrow)
    assert status(failed) is EvaluationStatus.PRECISION
    assert words in failed.failure.message


@pytest.mark.parametrize(
    "wrong",
    [
        lambda e: e * 1.002,
        lambda e: e * (1 + 0.002 * torch.arange(e.shape[0]).unsqueeze(1).double() / e.shape[0]),
        lambda e: e + 0.002,
        lambda e: _with(e, (slice(0, 2), slice(None))),
    ],
)
def test_an_error_of_that_size_from_another_cause_is_not_blamed_on_precision(check, wrong):
    expected = normal(96, 128)
    assert status(check(expected, wrong(expected).float())) is EvaluationStatus.INCORRECT_NUMERICAL


def test_merged_results_keep_the_largest_errors_and_add_the_counts(check):
    expected = normal(10, 10)
    good, bad = check(expected, expected.float()), check(expected, torch.zeros(10, 10))
    both = merge(good.correctness, bad.correctness)
    assert both.max_absolute_error == bad.correctness.max_absolute_error
    assert both.total == 200
    assert both.mismatched == 100


def test_precision_is_recognised_in_outputs_too_large_to_be_mapped(check):
    x = normal(40, 70_000).float()
    expected = torch.tanh(x.double())
    failed = check(expected, torch.tanh(rounded(x, "bfloat16")))
    assert expected.numel() > scan_module.MARKED_ELEMENTS
    assert status(failed) is EvaluationStatus.PRECISION
    zeros = check(expected, torch.zeros(40, 70_000))
    assert status(zeros) is EvaluationStatus.INCORRECT_NUMERICAL


def test_the_checker_needs_little_memory_of_its_own(check):
    """G31: the checker must not run out of memory where the kernel did not."""
    expected = normal(4000, 4000)
    got = expected.float()
    before = peak_bytes()
    assert check(expected, got).passed
    assert not check(expected, got + 1).passed
    assert peak_bytes() - before < (64 << 20) + (256 << 20)  # got + 1, and what it may use


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
