import anyio
import pytest

from kernelarc.guard.schema import EvaluationStatus
from kernelarc.server import candidate_tools

pytestmark = pytest.mark.anyio


async def test_a_right_candidate_passes_and_is_told_to_benchmark(connected, source, era):
    async with connected(era) as bench:
        result = await bench.verify(source(), note="first")
        assert result["verdict"] == "PASSED"
        assert result["state"] == "done"
        assert result["guidance"]["plateau"] == "none"
        assert result["solution_id"] in result["next"]
        assert "benchmark" in result["next"]
        assert "failures" not in result
        [attempt] = bench.services.archive.reports.attempts("rmsnorm")
        assert attempt.status is EvaluationStatus.PASSED
        assert (attempt.strategy, attempt.note) == ("vectorise", "first")


async def test_the_verdict_comes_first_and_nothing_is_null(connected, source, era):
    async with connected(era) as bench:
        result = await bench.verify(source())
        assert next(iter(result)) == "verdict"
        assert None not in result.values()
        assert None not in result["guidance"].values()


async def test_a_wrong_candidate_is_told_what_failed_once(connected, source, era):
    async with connected(era) as bench:
        result = await bench.verify(source("verdict: INCORRECT_NUMERICAL"))
        assert result["verdict"] == "INCORRECT_NUMERICAL"
        texts = [failure["message"] for failure in result["failures"]]
        assert result["message"] not in texts
        assert all(failure["axes"] for failure in result["failures"])
        assert f"kernelarc://jobs/{result['job_id']}/log" in result["next"]


async def test_a_compile_error_shows_the_compilers_words(connected, source):
    async with connected() as bench:
        result = await bench.verify(source("verdict: COMPILE_ERROR"))
        assert result["compiler_log"] == "main.cpp:1: error: scripted"


@pytest.mark.parametrize(
    ("mistyped", "first", "last"),
    [
        ({"strategy": "vectorize"}, "unknown strategy 'vectorize'. Did you mean 'vectorise'?", ""),
        ({"strategy": "Fast_Math"}, "Did you mean 'fast-math'?", ""),
        ({"problem": "rms_norm"}, "unknown problem 'rms_norm'. Did you mean 'rmsnorm'?", ""),
        ({"language": "cppp"}, "Did you mean 'cpp'?", "Allowed: cpp, pytorch, triton."),
        ({"language": "cuda"}, "cannot be judged on device 'cpu'. Allowed:", ""),
    ],
)
async def test_a_mistyped_name_is_answered_with_the_nearest_one(
    connected, source, mistyped, first, last
):
    arguments = {"problem": "rmsnorm", "strategy": "vectorise", "language": "cpp"} | mistyped
    async with connected() as bench:
        text = await bench.refused("compile_and_verify", source=source(), **arguments)
    assert first in text
    assert text.endswith(last)


async def test_only_what_fits_problem_and_device_is_offered(connected, source):
    async with connected() as bench:
        text = await bench.refused(
            "compile_and_verify",
            problem="rmsnorm",
            language="cpp",
            source=source(),
            strategy="nothing like it",
        )
        contract = await bench.call("get_problem", problem="rmsnorm")
        listed = text.partition("Allowed: ")[2].strip(". ").split(", ")
        assert listed == [strategy["id"] for strategy in contract["strategies"]]
        assert "Did you mean" not in text
        text = await bench.refused("get_problem", problem="nothing like it")
        problems = await bench.call("list_problems")
        listed = text.partition("Known problems: ")[2].partition(".")[0].split(", ")
        assert listed == [line["problem"] for line in problems["problems"]]
        assert "gemm_bf16" not in listed


async def test_known_code_is_answered_from_the_archive(connected, source, era):
    async with connected(era) as bench:
        first = await bench.verify(source())
        again = await bench.verify(source())
        assert again["cached"] is True
        assert again["evidence"] == first["evidence"]
        assert len(bench.guard.verified) == 1


@pytest.mark.parametrize("how", [{}, {"force": True}, {"strategy": "fuse-passes"}])
async def test_the_same_code_again_is_no_attempt(connected, source, how):
    async with connected() as bench:
        await bench.verify(source(), note="first")
        for _ in range(8):
            again = await bench.verify(source(), note="again", **how)
        guidance = again["guidance"]
        assert [(t["strategy"], t["attempts"]) for t in guidance["tried"]] == [("vectorise", 1)]
        assert guidance["plateau"] == "none"
        [attempt] = bench.services.archive.reports.attempts("rmsnorm")
        assert attempt.note == "first"


async def test_force_has_known_code_judged_again(connected, source):
    async with connected() as bench:
        await bench.verify(source())
        again = await bench.verify(source(), force=True)
        assert "cached" not in again
        assert len(bench.guard.verified) == 2


async def test_a_call_that_outlasts_its_wait_returns_a_job(connected, source, era):
    async with connected(era) as bench:
        pending = await bench.verify(source("waits"), wait_s=0)
        assert pending["verdict"] == "PENDING"
        assert pending["state"] in ("queued", "running")
        assert f'get_result(job_id="{pending["job_id"]}")' in pending["next"]
        bench.guard.gate.set()
        result = await bench.call("get_result", job_id=pending["job_id"])
        assert result["verdict"] == "PASSED"


async def test_a_repeated_call_joins_the_running_job(connected, source, era):
    async with connected(era) as bench:
        first = await bench.verify(source("waits"), wait_s=0)
        second = await bench.verify(source("waits"), wait_s=0)
        assert first["job_id"] == second["job_id"]
        bench.guard.gate.set()
        await bench.call("get_result", job_id=first["job_id"])
        assert len(bench.guard.verified) == 1
        assert len(bench.services.archive.reports.attempts("rmsnorm")) == 1


async def test_a_client_that_gives_up_loses_nothing(connected, source, era):
    async with connected(era) as bench:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bench.verify, source("waits"))
                await bench.guard.started.wait()
                scope.cancel()
        assert bench.guard.killed == []
        bench.guard.gate.set()
        result = await bench.verify(source("waits"))
        assert result["verdict"] == "PASSED"
        assert len(bench.guard.verified) == 1


async def test_the_wait_is_capped(connected, source, monkeypatch):
    monkeypatch.setattr(candidate_tools, "MAX_WAIT_S", 0.01)
    async with connected() as bench:
        with anyio.fail_after(10):
            pending = await bench.verify(source("waits"), wait_s=100_000)
        assert pending["verdict"] == "PENDING"


async def test_a_faster_candidate_becomes_the_leader(connected, source, era):
    async with connected(era) as bench:
        result = await bench.lead(source())
        assert result["verdict"] == "PROMOTED"
        assert result["speedup"] == {"median": 1.2346, "low": 1.2, "high": 1.3, "coverage": 0.983}
        assert result["margin"] == 0.0123
        assert result["compared_with"] == "reference"
        assert result["timings"][0]["roofline_fraction"] == 0.5
        leader = await bench.call("get_leader", problem="rmsnorm")
        assert leader["leader"]["solution_id"] == result["solution_id"]


@pytest.mark.parametrize("outcome", ["BACKUP", "TIE", "INCONCLUSIVE", "REJECTED"])
async def test_other_outcomes_make_no_leader(connected, source, outcome):
    async with connected() as bench:
        result = await bench.lead(source(f"outcome: {outcome}"))
        assert result["verdict"] == outcome
        assert ("timings" in result) == (outcome != "INCONCLUSIVE")
        assert "leader" not in await bench.call("get_leader", problem="rmsnorm")


async def test_a_rejection_while_timing_names_its_status(connected, source):
    async with connected() as bench:
        result = await bench.lead(source("outcome: REJECTED"))
        assert result["message"].startswith("STALE_OUTPUT")


async def test_only_verified_solutions_are_timed(connected, source, era):
    async with connected(era) as bench:
        wrong = await bench.verify(source("verdict: NONFINITE"))
        text = await bench.refused("benchmark", solution_id=wrong["solution_id"])
        assert "NONFINITE" in text
        assert "compile_and_verify" in text
        assert bench.guard.timed == []


async def test_timing_the_leader_again_answers_from_the_archive(connected, source):
    async with connected() as bench:
        first = await bench.lead(source())
        again = await bench.call("benchmark", solution_id=first["solution_id"][:8])
        assert again["cached"] is True
        assert again["verdict"] == "PROMOTED"
        assert len(bench.guard.timed) == 1


async def test_the_leader_is_what_a_candidate_is_timed_against(connected, source):
    async with connected() as bench:
        first = await bench.lead(source())
        second = await bench.lead(source(body="y[1] = x[1];"))
        assert second["compared_with"] == first["solution_id"]
        assert bench.guard.timed[1] == (second["solution_id"], first["solution_id"])


async def test_a_decided_benchmark_is_not_run_twice(connected, source, era):
    async with connected(era) as bench:
        first = await bench.lead(source("outcome: TIE"))
        again = await bench.call("benchmark", solution_id=first["solution_id"])
        assert again["cached"] is True
        assert len(bench.guard.timed) == 1


async def test_an_undecided_benchmark_may_be_repeated(connected, source):
    async with connected() as bench:
        first = await bench.lead(source("outcome: INCONCLUSIVE"))
        again = await bench.call("benchmark", solution_id=first["solution_id"])
        assert "cached" not in again
        assert len(bench.guard.timed) == 2


async def test_a_submission_without_a_strategy_counts_as_unspecified(connected, source):
    async with connected() as bench:
        result = await bench.verify(source(), strategy="")
        assert result["guidance"]["tried"][0]["strategy"] == "unspecified"


async def test_a_plateau_demands_another_strategy(connected, source, era):
    async with connected(era) as bench:
        for number in range(4):
            result = await bench.verify(source(body=f"y[{number}] = x[{number}] * {number};"))
        assert result["guidance"]["must_pivot"] is True
        options = result["guidance"]["pivot_to"]
        assert "vectorise" not in options
        fresh = source(body="for (long i = 0; i < 9; ++i) { float t = x[i]; y[i] = t * t + 1; }")
        text = await bench.refused(
            "compile_and_verify",
            problem="rmsnorm",
            language="cpp",
            source=fresh,
            strategy="vectorise",
        )
        assert options[0] in text
        assert len(bench.services.archive.reports.attempts("rmsnorm")) == 4
        pivoted = await bench.verify(fresh, strategy=options[0])
        assert pivoted["guidance"]["must_pivot"] is False


async def test_known_code_is_served_even_at_a_plateau(connected, source):
    async with connected() as bench:
        for number in range(4):
            await bench.verify(source(body=f"y[{number}] = x[{number}];"))
        again = await bench.verify(source(body="y[0] = x[0];"))
        assert again["cached"] is True


async def test_guidance_says_when_the_roofline_is_near(connected, source):
    async with connected() as bench:
        result = await bench.lead(source("floor: 19.5"))
        assert result["guidance"]["near_roofline"] is True
        assert "Stop" in result["guidance"]["advice"]


async def test_guidance_names_the_nearest_earlier_attempt(connected, source):
    body = "for (int i = 0; i < {}; ++i) y[i] = x[i] * x[i] + x[i] / 3.0f - y[i] * 2.0f;"
    async with connected() as bench:
        first = await bench.verify(source(body=body.format(100)))
        second = await bench.verify(source(body=body.format(200)))
        assert second["guidance"]["nearest"]["solution_id"] == first["solution_id"]
        assert second["guidance"]["nearest"]["similarity"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problem": "nope"}, "list_problems"),
        ({"language": "rust"}, "Allowed: cpp, pytorch, triton"),
        ({"strategy": "magic"}, "vectorise"),
        ({"source": None}, "either source"),
        ({"files": {"main.cpp": "x"}}, "not both"),
        ({"source": None, "files": {"a.cpp": "x", "b.cpp": "y"}}, "named main"),
        ({"source": None, "files": {"../main.cpp": "x"}}, "normalised"),
        ({"source": "   "}, "empty"),
        ({"language": "pytorch", "cflags": ["-O2"]}, "cflags"),
        ({"parents": ["deadbeefdeadbeef"]}, "unknown solution"),
        ({"note": "x" * 2001}, "2000"),
    ],
)
async def test_a_bad_submission_is_told_what_is_allowed(connected, source, arguments, said):
    async with connected() as bench:
        good = {"problem": "rmsnorm", "language": "cpp", "source": source()}
        given = {key: value for key, value in (good | arguments).items() if value is not None}
        assert said in await bench.refused("compile_and_verify", **given)
        assert bench.guard.verified == []


async def test_several_files_are_one_candidate(connected):
    async with connected() as bench:
        files = {"main.cpp": '#include "tile.hpp"\n', "tile.hpp": "#pragma once\n"}
        result = await bench.call(
            "compile_and_verify", problem="rmsnorm", language="cpp", files=files
        )
        solution = bench.services.archive.catalogue.solution(result["solution_id"])
        assert solution.spec.entry_point == "main.cpp::run"


async def test_compiler_flags_are_part_of_the_identity(connected, source):
    async with connected() as bench:
        plain = await bench.verify(source())
        fast = await bench.verify(source(), cflags=["-ffast-math"])
        assert plain["solution_id"] != fast["solution_id"]


async def test_get_result_of_an_unknown_job_says_how_ids_look(connected, era):
    async with connected(era) as bench:
        assert "j_12" in await bench.refused("get_result", job_id="nonsense")
        assert "unknown job" in await bench.refused("get_result", job_id="j_99")
