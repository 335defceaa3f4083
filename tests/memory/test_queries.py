"""What is asked often must be answered from an index, however large the archive is."""

import pytest

from kernelarc.memory import board_search, queries
from kernelarc.memory.board_search import Filters

FILTERS = Filters(
    problem={"id": 1, "category": "c"},
    related_on="Test CPU",
    kinds=("success",),
    strategy="s",
    agent_id=1,
    verified_only=False,
    cap=5,
)
JOB = {
    "solution": "",
    "problem": 1,
    "kind": "",
    "device": "",
    "guard_key": "",
    "params": "",
    "force": 0,
    "max_interruptions": 3,
}
UNFINISHED = queries.where(queries.JOB, [queries.IS_UNFINISHED], "ORDER BY j.id")
ATTEMPTS = queries.where(queries.ATTEMPT, ["s.problem_id = :problem", "s.id > :after"])
OFTEN = {
    "queue": (queries.QUEUE, {"device": "cpu"}),
    "claim": (queries.CLAIM, {"id": 1, "instance": 1, "device": "cpu", "now": 0.0}),
    "equal job": (queries.EQUAL_JOB, JOB),
    "orphans": (queries.RUNNING_INSTANCES, {}),
    "unfinished": (UNFINISHED, {}),
    "leader": (queries.LEADER, {"problem": 1, "device": ""}),
    "token": (queries.AGENT_BY_TOKEN, {"digest": ""}),
    "current problem": (queries.CURRENT_PROBLEM, {"name": ""}),
    "prefix": (queries.SOLUTIONS_BY_PREFIX, {"prefix": ""}),
    "attempts": (ATTEMPTS, {"problem": 1, "after": 0}),
    "citing": (queries.CITING, {"solution": ""}),
}


def _plan(scene, sql, values):
    with scene.archive._store.read() as db:
        return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize("name", OFTEN)
def test_no_table_is_scanned(scene, name):
    plan = _plan(scene, *OFTEN[name])
    assert any(step.startswith("SEARCH") for step in plan)
    assert [step for step in plan if step.startswith("SCAN") and "subquery" not in step] == []


def test_a_page_of_the_board_is_read_in_order_and_never_sorted(scene):
    sql = board_search.newest_sql(FILTERS, verified=1)
    plan = _plan(scene, sql, FILTERS.values | {"floor": 0, "before": 9, "limit": 20})
    assert sum("insights_by_problem" in step for step in plan) == 2
    assert sum("insights_by_category" in step for step in plan) == 2
    assert [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN")] == []
