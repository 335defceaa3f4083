"""What a board post rests on: records of the guard, and whether they support its claim."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlite_utils import Database

from kernelarc.guard.errors import UnknownId
from kernelarc.memory import queries
from kernelarc.memory.catalogue import full_id
from kernelarc.memory.ids import Prefix, number
from kernelarc.memory.jobs import load_job


class Evidence(NamedTuple):
    """A solution, or one record of the guard about it."""

    solution_id: str
    verdict_id: int | None = None
    benchmark_id: int | None = None


def find(db: Database, text: str) -> Evidence:
    """The record that an agent names as evidence, inside an open transaction.

    Args:
        db: The transaction's connection.
        text: A verdict, benchmark, job or submission id, or the unique prefix of a solution's.
            A job stands for its result, or for its solution until it has one.

    Raises:
        UnknownId: There is no such record.
    """
    prefix = text.strip().partition("_")[0]
    if prefix == Prefix.JOB:
        job = load_job(db, number(Prefix.JOB, text))
        return find(db, job.result_id or job.solution_id)
    if prefix == Prefix.VERDICT:
        row_id = number(Prefix.VERDICT, text)
        return Evidence(_solution_of(db, "verdicts", row_id, text), verdict_id=row_id)
    if prefix == Prefix.BENCHMARK:
        row_id = number(Prefix.BENCHMARK, text)
        return Evidence(_solution_of(db, "benchmarks", row_id, text), benchmark_id=row_id)
    if prefix == Prefix.SUBMISSION:
        row_id = number(Prefix.SUBMISSION, text)
        return Evidence(_solution_of(db, "submissions", row_id, text))
    return Evidence(full_id(db, text))


def attach(db: Database, insight_id: int, evidence: Iterable[Evidence]) -> None:
    """Record what an insight rests on and decide whether it is verified."""
    rows: list[dict[str, Any]] = [
        {"insight_id": insight_id, "position": position, **record._asdict()}
        for position, record in enumerate(dict.fromkeys(evidence))
    ]
    db.table("insight_evidence").insert_all(rows)
    _reverify(db, [insight_id])


def reverify_citing(db: Database, solution_id: str) -> None:
    """Decide anew for the insights that cite a solution, after a record about it was added."""
    citing = db.execute(queries.CITING, {"solution": solution_id})
    _reverify(db, [row[0] for row in citing])


def _reverify(db: Database, insights: list[int]) -> None:
    if insights:
        db.execute(queries.REVERIFY, {"ids": json.dumps(insights)})


def _solution_of(db: Database, table: str, row_id: int, text: str) -> str:
    row = next(db.table(table).rows_where("id = ?", [row_id], select="solution_id"), None)
    if row is None:
        raise UnknownId(table.removesuffix("s"), text)
    return str(row["solution_id"])
