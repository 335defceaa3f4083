import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from kernelarc.guard import problems
from kernelarc.server import prompts
from kernelarc.strategies import catalogue

pytestmark = pytest.mark.anyio


async def test_there_is_a_prompt_for_the_work_and_one_for_each_strategy(connected, era):
    async with connected(era) as bench:
        listed = (await bench.client.list_prompts()).prompts
        ids = catalogue.load().ids()
        assert [prompt.name for prompt in listed] == [
            "optimize-kernel",
            *(f"strategy-{strategy}" for strategy in ids),
        ]
        assert all(prompt.description and prompt.title for prompt in listed)


async def test_the_workflow_names_the_problem_and_the_playbook(connected, era):
    async with connected(era) as bench:
        arguments = {"problem": "rmsnorm", "strategy": "vectorise"}
        answer = await bench.client.get_prompt("optimize-kernel", arguments)
        text = answer.messages[0].content.text
        assert 'get_problem(problem="rmsnorm")' in text
        assert "# Strategy vectorise" in text
        assert "## Pitfalls" in text
        assert "{" not in text.partition("# Strategy")[0]


async def test_every_strategy_prompt_renders(connected):
    async with connected() as bench:
        for strategy in catalogue.load().strategies.values():
            answer = await bench.client.get_prompt(f"strategy-{strategy.id}", {})
            assert strategy.body.strip() in answer.messages[0].content.text


async def test_an_unknown_problem_is_refused_in_words(connected, era):
    async with connected(era) as bench:
        with pytest.raises(MCPError, match="rmsnorm"):
            await bench.client.get_prompt("optimize-kernel", {"problem": "nope"})


OPTIMIZE = PromptReference(type="ref/prompt", name="optimize-kernel")


@pytest.mark.parametrize(
    ("ref", "argument", "typed", "expected"),
    [
        (OPTIMIZE, "problem", "gem", "gemm"),
        (
            PromptReference(type="ref/prompt", name="optimize-kernel"),
            "strategy",
            "vec",
            "vectorise",
        ),
        (
            ResourceTemplateReference(type="ref/resource", uri="kernelarc://problems/{name}"),
            "name",
            "soft",
            "softmax",
        ),
    ],
)
async def test_names_are_completed(connected, era, ref, argument, typed, expected):
    async with connected(era) as bench:
        answer = await bench.client.complete(ref, {"name": argument, "value": typed})
        assert answer.completion.values[0] == expected


async def test_what_is_not_ours_to_complete_has_no_values(connected):
    async with connected() as bench:
        ref = ResourceTemplateReference(type="ref/resource", uri="kernelarc://solutions/{id}")
        answer = await bench.client.complete(ref, {"name": "id", "value": "a"})
        assert answer.completion.values == []


def test_names_that_begin_as_typed_come_first():
    found = prompts._matching(["a_norm", "norm_b", "norm"], "norm")
    assert found.values == ["norm_b", "norm", "a_norm"]
    assert found.has_more is False


def test_problem_names_are_those_of_the_problem_set():
    ref = PromptReference(type="ref/prompt", name="strategy-vectorise")
    assert prompts._completed(ref, "problem", catalogue.load()) == problems.names()
