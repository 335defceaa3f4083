from kernelarc.guard import problems
from kernelarc.guard.schema import OutputTolerance
from kernelarc.server import contract_text


def test_a_tolerance_names_only_the_terms_it_has():
    words = contract_text._tolerance(OutputTolerance(rtol=1e-5, atol_rms=2e-6))
    assert words == "|error| <= 2e-06 rms(expected) + 1e-05 |expected|"


def test_no_tolerance_is_equality():
    assert contract_text._tolerance(OutputTolerance(rtol=0, atol_rms=0)) == "exactly equal"


def test_a_matched_ratio_is_told_with_its_blocks():
    rule = OutputTolerance(rtol=1e-3, atol_rms=0, matched_ratio=0.99, block_rows=16)
    words = contract_text._tolerance(rule)
    assert words.endswith("for 99.00% of the elements in each block of 16 leading rows")


def test_scalars_have_no_shape():
    definition = problems.get("rmsnorm").definition
    words = contract_text.tensors(definition.inputs)
    assert words["x"].startswith("float32[M, N]")
    assert words["eps"].startswith("float32:")


def test_forbidden_arithmetic_is_named():
    assert "bfloat16" in contract_text.precision(problems.get("rmsnorm"))
