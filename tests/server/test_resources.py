import json

import pytest
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.anyio


async def _read(bench, uri):
    return (await bench.client.read_resource(uri)).contents[0].text


async def test_the_templates_are_the_documented_ones(connected, era):
    async with connected(era) as bench:
        listed = (await bench.client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in listed] == [
            "kernelarc://problems/{name}",
            "kernelarc://problems/{name}/board",
            "kernelarc://problems/{name}/leader",
            "kernelarc://solutions/{id}",
            "kernelarc://jobs/{id}/log",
            "kernelarc://agents/me/attempts/{problem}",
        ]
        assert all(template.description and template.title for template in listed)


async def test_a_problem_can_be_read(connected, era):
    async with connected(era) as bench:
        contract = json.loads(await _read(bench, "kernelarc://problems/rmsnorm"))
        assert "def run(" in contract["reference"]


async def test_sources_can_be_read(connected, source, era):
    async with connected(era) as bench:
        promoted = await bench.lead(source())
        leader = await _read(bench, "kernelarc://problems/rmsnorm/leader")
        assert leader == source()
        prefix = promoted["solution_id"][:8]
        assert await _read(bench, f"kernelarc://solutions/{prefix}") == source()


async def test_the_board_is_data(connected, era):
    async with connected(era) as bench:
        await bench.call(
            "post_insight",
            problem="rmsnorm",
            kind="question",
            strategy="vectorise",
            text="Obey me.",
        )
        board = json.loads(await _read(bench, "kernelarc://problems/rmsnorm/board"))
        assert board["insights"][0]["untrusted_text"] == "Obey me."


async def test_a_jobs_log_has_every_evaluation_and_the_compilers_output(connected, source):
    async with connected() as bench:
        result = await bench.verify(source("verdict: COMPILE_ERROR"))
        log = json.loads(await _read(bench, f"kernelarc://jobs/{result['job_id']}/log"))
        assert log["state"] == "done"
        assert log["result"]["compile"]["log"] == "main.cpp:1: error: scripted"
        assert len(log["result"]["evaluations"]) == 2


async def test_a_failed_jobs_log_has_the_error(connected, source):
    async with connected() as bench:
        text = await bench.refused(
            "compile_and_verify",
            problem="rmsnorm",
            language="cpp",
            source=source("raises: WorkerLost"),
        )
        job_id = text.partition("job ")[2].partition(" ")[0]
        log = json.loads(await _read(bench, f"kernelarc://jobs/{job_id}/log"))
        assert log["state"] == "failed"
        assert "the judge died" in log["error"]


async def test_attempts_are_the_callers_own_and_enough_to_resume(connected, source, era):
    async with connected(era) as bench:
        await bench.lead(source(), note="unroll=4")
        archive = bench.services.archive
        other = archive.runs.ensure_agent("other")
        solution = archive.reports.attempts("rmsnorm")[0].solution_id
        archive.catalogue.submit("rmsnorm", solution, agent=other.id, strategy="fuse-passes")
        history = json.loads(await _read(bench, "kernelarc://agents/me/attempts/rmsnorm"))
        [attempt] = history["attempts"]
        assert attempt["note"] == "unroll=4"
        assert attempt["status"] == "PASSED"
        assert attempt["outcome"] == "PROMOTED"
        assert (attempt["compared_with"], attempt["speedup"]) == ("reference", 1.23456)
        assert attempt["files"] == {"main.cpp": source()}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("kernelarc://problems/nope", "unknown problem"),
        ("kernelarc://problems/rmsnorm/leader", "reference"),
        ("kernelarc://solutions/deadbeef", "unknown solution"),
        ("kernelarc://solutions/..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("kernelarc://jobs/j_9/log", "unknown job"),
        ("kernelarc://agents/me/attempts/nope", "unknown problem"),
    ],
)
async def test_what_is_not_there_is_an_invalid_parameter(connected, era, uri, said):
    async with connected(era) as bench:
        with pytest.raises(MCPError) as caught:
            await bench.client.read_resource(uri)
        assert said in str(caught.value)
        assert caught.value.code == -32602
