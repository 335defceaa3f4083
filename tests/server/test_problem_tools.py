import pytest

from kernelarc.guard import problems

pytestmark = pytest.mark.anyio


async def test_the_list_has_what_this_device_can_judge(connected, era):
    async with connected(era) as bench:
        listed = await bench.call("list_problems")
        names = [line["problem"] for line in listed["problems"]]
        assert names == [name for name in problems.names() if problems.get(name).ranked("cpu")]
        assert listed["device"] == "Scripted CPU"


async def test_the_list_counts_attempts_and_names_the_leader(connected, source):
    async with connected() as bench:
        promoted = await bench.lead(source())
        listed = await bench.call("list_problems")
        [line] = [line for line in listed["problems"] if line["problem"] == "rmsnorm"]
        assert line["attempts"] == 1
        assert line["leader"]["solution_id"] == promoted["solution_id"]
        assert line["leader"]["speedup_over_reference"] == 1.235


async def test_a_contract_is_complete_for_every_problem(connected):
    async with connected() as bench:
        for line in (await bench.call("list_problems"))["problems"]:
            contract = await bench.call("get_problem", problem=line["problem"])
            definition = problems.get(line["problem"]).definition
            assert contract["reference"] == definition.reference
            assert list(contract["inputs"]) == list(definition.inputs)
            assert set(contract["tolerance"]) == set(definition.outputs)
            assert 'extern "C" void run(' in contract["cpp_signature"]
            assert all(workload["floor_us"] == 10.0 for workload in contract["workloads"])
            assert "vectorise" in [strategy["id"] for strategy in contract["strategies"]]
            assert [line["id"] for line in contract["languages"]] == ["cpp", "pytorch", "triton"]


async def test_a_contract_shows_the_leaders_time_by_workload(connected, source, era):
    async with connected(era) as bench:
        await bench.lead(source())
        contract = await bench.call("get_problem", problem="rmsnorm")
        assert all(workload["leader_us"] == 20.0 for workload in contract["workloads"])
        assert contract["leader"]["strategy"] == "vectorise"


async def test_hidden_shapes_are_not_told(connected):
    async with connected() as bench:
        contract = await bench.call("get_problem", problem="rmsnorm")
        ranked = problems.get("rmsnorm").ranked("cpu")
        assert [w["workload"] for w in contract["workloads"]] == [w.uuid for w in ranked]
        assert "hidden" not in repr(contract["workloads"])


async def test_without_a_leader_the_reference_is_to_beat(connected, era):
    async with connected(era) as bench:
        answer = await bench.call("get_leader", problem="rmsnorm")
        assert "leader" not in answer
        assert "files" not in answer


async def test_the_leader_comes_with_source_parents_backups_and_history(connected, source, era):
    async with connected(era) as bench:
        first = await bench.lead(source())
        backup = await bench.lead(source("outcome: BACKUP", body="y[1] = x[2];"))
        text = source(body="for (;;) { *y = *x; break; }")
        second = await bench.lead(text, parents=[first["solution_id"]])
        answer = await bench.call("get_leader", problem="rmsnorm", history=True)
        assert answer["leader"]["solution_id"] == second["solution_id"]
        assert answer["leader"]["agent"] == "local"
        assert answer["files"] == {"main.cpp": text}
        assert answer["parents"] == [first["solution_id"]]
        spare = [line["solution_id"] for line in answer["backups"]]
        assert set(spare) == {first["solution_id"], backup["solution_id"]}
        assert [line["solution_id"] for line in answer["history"]] == [
            second["solution_id"],
            first["solution_id"],
        ]


async def test_the_leaders_source_can_be_left_out(connected, source):
    async with connected() as bench:
        await bench.lead(source())
        answer = await bench.call("get_leader", problem="rmsnorm", source=False, backups=0)
        assert "files" not in answer
        assert "backups" not in answer


async def test_an_unknown_problem_is_answered_with_the_known_ones(connected, era):
    async with connected(era) as bench:
        for tool in ("get_problem", "get_leader", "read_board"):
            text = await bench.refused(tool, problem="rmsnrom")
            assert "rmsnorm" in text
            assert "list_problems" in text
