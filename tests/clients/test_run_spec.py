import pytest
from pydantic import ValidationError

from kernelarc.clients.run_spec import AgentSpec, Budgets, RunSpec, team


def test_a_spec_survives_storage_unchanged():
    spec = RunSpec(
        problems=["gemm", "softmax"],
        agents=[AgentSpec(name="ada", kind="llm", options={"model": "m"}), *team(2)],
        budgets=Budgets(attempts=3, minutes=None),
    )
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_run_needs_an_end():
    with pytest.raises(ValidationError, match="set attempts, minutes or both"):
        Budgets(attempts=None, minutes=None)


def test_repeated_names_are_named():
    with pytest.raises(ValidationError, match="each problem once: gemm"):
        RunSpec(problems=["gemm", "gemm"], agents=team(1))
    with pytest.raises(ValidationError, match="each agent once: ada"):
        RunSpec(problems=["gemm"], agents=[AgentSpec(name="ada"), AgentSpec(name="ada")])


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65, "<b>"])
def test_agent_names_are_plain_words(name):
    with pytest.raises(ValidationError):
        AgentSpec(name=name)


def test_a_misspelt_field_is_refused():
    with pytest.raises(ValidationError, match="atempts"):
        Budgets.model_validate({"atempts": 3})
