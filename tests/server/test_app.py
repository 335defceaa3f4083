import json

import pytest
from mcp import types

pytestmark = pytest.mark.anyio

TOOLS = {
    # name: (reads only, destroys, required arguments)
    "list_problems": (True, False, []),
    "get_problem": (True, False, ["problem"]),
    "compile_and_verify": (False, False, ["problem", "language"]),
    "benchmark": (False, False, ["solution_id"]),
    "post_insight": (False, False, ["problem", "kind", "text", "strategy"]),
    "read_board": (True, False, ["problem"]),
    "get_leader": (True, False, ["problem"]),
    "get_result": (True, False, ["job_id"]),
    "cancel_job": (False, True, ["job_id"]),
}
MAX_LIST_BYTES = 12_500
"""Every conversation begins with the list: about 3,000 tokens."""


async def test_the_tools_are_the_products(connected, era):
    async with connected(era) as bench:
        listed = (await bench.client.list_tools()).tools
        found = {
            tool.name: (
                tool.annotations.read_only_hint,
                tool.annotations.destructive_hint,
                tool.input_schema["required"],
            )
            for tool in listed
        }
        assert found == TOOLS
        assert list(found) == list(TOOLS)


async def test_every_tool_says_all_that_a_client_shows(connected):
    async with connected() as bench:
        for tool in (await bench.client.list_tools()).tools:
            assert tool.title
            assert "\n\n" in tool.description or tool.name == "list_problems"
            assert tool.annotations.idempotent_hint is True
            assert tool.annotations.open_world_hint is False
            assert tool.output_schema["type"] == "object"
            assert tool.output_schema["required"]


async def test_the_list_of_tools_is_small(connected, era):
    async with connected(era) as bench:
        listed = await bench.client.list_tools()
        sizes = {
            tool.name: len(tool.model_dump_json(by_alias=True, exclude_none=True))
            for tool in listed.tools
        }
        assert sum(sizes.values()) < MAX_LIST_BYTES, sizes


async def test_schemas_need_nothing_outside_themselves(connected):
    async with connected() as bench:
        for tool in (await bench.client.list_tools()).tools:
            text = json.dumps([tool.input_schema, tool.output_schema])
            assert "$ref" not in text
            assert '"null"' not in text


async def test_results_satisfy_the_published_schema(connected, source, era):
    """The client validates structured content against the output schema of the tool list."""
    async with connected(era) as bench:
        await bench.client.list_tools()
        result = await bench.lead(source())
        for tool, arguments in (
            ("list_problems", {}),
            ("get_problem", {"problem": "rmsnorm"}),
            ("get_leader", {"problem": "rmsnorm", "history": True}),
            ("read_board", {"problem": "rmsnorm"}),
            ("get_result", {"job_id": result["job_id"]}),
        ):
            answer = await bench.client.call_tool(tool, arguments)
            assert json.loads(answer.content[0].text) == answer.structured_content


async def test_instructions_are_the_workflow(connected, era):
    async with connected(era) as bench:
        text = bench.server.instructions
        for name in TOOLS.keys() - {"cancel_job"}:
            assert name in text
        assert len(text.splitlines()) == 6


async def test_an_unknown_tool_is_an_error_for_the_model(connected, era):
    async with connected(era) as bench:
        assert "profile" in await bench.refused("profile")


async def test_a_defect_of_ours_tells_nothing_of_itself(connected, monkeypatch, caplog, era):
    async with connected(era) as bench:

        def broken(*arguments, **options):
            raise RuntimeError("secret internals")

        monkeypatch.setattr(bench.services.archive.board, "read", broken)
        text = await bench.refused("read_board", problem="rmsnorm")
        assert "secret" not in text
        assert "secret internals" in caplog.text


async def test_capabilities_are_what_the_server_has(connected, era):
    async with connected(era) as bench:
        found = bench.client.server_capabilities
        assert isinstance(found, types.ServerCapabilities)
        assert found.tools is not None
        assert found.resources is not None
        assert found.prompts is not None
        assert found.completions is not None
