"""Problems, sources, solutions and submissions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import RequestError, UnknownId, UnknownProblem
from kernelarc.guard.schema import Problem, Solution, solution_id
from kernelarc.memory import queries
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, number, optional_short, short
from kernelarc.memory.rows import ProblemRow, SolutionRow, Submission
from kernelarc.memory.runs import append_event, run_of
from kernelarc.memory.texts import MAX_STRATEGY_CHARS, checked

MAX_NOTE_CHARS = 2000
MAX_PARENTS = 16
_PREFIX = re.compile(r"[0-9a-f]{8,32}")


class Catalogue:
    """What can be optimised and what was handed in. See ``Archive`` for the rules of use."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def register_problem(self, problem: Problem) -> ProblemRow:
        """Make this version of the problem the current one of its name.

        A version is known by its digest. Verdicts, leaders, attempts and insights belong to a
        version: a changed definition starts afresh, and taking the change back brings the
        earlier records back. Does nothing when the version is current already.
        """
        now = self._clock()
        version = {"name": problem.name, "digest": problem.digest}
        with self._store.write() as db:
            known = db.execute(queries.PROBLEM_VERSION, version).fetchone()
            title = problem.contract.title or problem.name
            category = problem.contract.category or problem.definition.op_type or "other"
            row = version | {"title": title, "category": category, "registered_at": now}
            row_id = known[0] if known else insert(db, "problems", row)
            current = next(db.query(queries.CURRENT_PROBLEM, {"name": problem.name}), None)
            if current is None or current["id"] != row_id:
                db.table("registrations").insert(
                    {"name": problem.name, "problem_id": row_id, "registered_at": now}
                )
            return _problem(current_problem(db, problem.name))

    def problems(self) -> list[ProblemRow]:
        """The current version of every problem, by name."""
        with self._store.read() as db:
            return [_problem(row) for row in db.query(queries.CURRENT_PROBLEMS)]

    def problem(self, name: str) -> ProblemRow:
        """The current version of a problem.

        Raises:
            UnknownProblem: It was never registered.
        """
        with self._store.read() as db:
            return _problem(current_problem(db, name))

    def add_solution(self, solution: Solution) -> str:
        """Store a solution and its texts; equal ones are stored once.

        Returns:
            Its id. Name, author and description are those of the first that was stored.
        """
        identity = solution_id(solution)
        document = solution.model_dump(mode="json", exclude={"sources"})
        texts = [(s.path, _sha256(s.content), s.content) for s in solution.sources]
        with self._store.write() as db:
            if db.execute(queries.SOLUTION, {"id": identity}).fetchone():
                return identity
            db.table("sources").insert_all(
                [{"digest": digest, "text": text} for _, digest, text in texts], ignore=True
            )
            db.table("solutions").insert(
                {
                    "id": identity,
                    "problem": solution.definition,
                    "language": str(solution.language),
                    "entry_point": solution.spec.entry_point,
                    "document": json.dumps(document),
                    "created_at": self._clock(),
                }
            )
            db.table("solution_sources").insert_all(
                {"solution_id": identity, "position": position, "path": path, "digest": digest}
                for position, (path, digest, _) in enumerate(texts)
            )
        return identity

    def resolve_solution(self, prefix: str) -> str:
        """The full id of the one solution whose id begins with ``prefix``.

        Raises:
            UnknownId: It is no prefix of at least 8 hexadecimal digits, or of no solution, or
                of several.
        """
        with self._store.read() as db:
            return full_id(db, prefix)

    def solution(self, prefix: str) -> Solution:
        """A stored solution with its texts; ``UnknownId`` as ``resolve_solution``."""
        with self._store.read() as db:
            identity = {"id": full_id(db, prefix)}
            row = next(db.query(queries.SOLUTION, identity))
            sources = [
                {"path": source["path"], "content": source["text"]}
                for source in db.query(queries.SOLUTION_SOURCES, identity)
            ]
        return Solution.model_validate_json(
            json.dumps(json.loads(row["document"]) | {"sources": sources})
        )

    def solution_row(self, prefix: str) -> SolutionRow:
        """A stored solution without its texts; ``UnknownId`` as ``resolve_solution``."""
        with self._store.read() as db:
            identity = {"id": full_id(db, prefix)}
            row = next(db.query(queries.SOLUTION, identity))
            sources = list(db.query(queries.SOLUTION_SOURCES, identity))
        return SolutionRow(
            id=row["id"],
            problem=row["problem"],
            language=row["language"],
            entry_point=row["entry_point"],
            sources={source["path"]: source["digest"] for source in sources},
            created_at=row["created_at"],
        )

    def source(self, digest: str) -> str:
        """The text with that SHA-256; ``UnknownId`` if none is stored."""
        with self._store.read() as db:
            found = db.execute(queries.SOURCE, {"digest": digest}).fetchone()
        if found is None:
            raise UnknownId("source", digest)
        return str(found[0])

    def submit(
        self,
        problem: str,
        solution_id: str,
        *,
        agent: str,
        strategy: str,
        parents: Sequence[str] = (),
        note: str = "",
    ) -> Submission:
        """Record an attempt: ``agent`` hands in a stored solution.

        The first time is an attempt. When the same agent hands in the same solution again, its
        first submission is returned as it was, and nothing is recorded: no effort went into it.

        Args:
            problem: Name of a registered problem.
            solution_id: Id, or unique prefix, of a stored solution for that problem.
            agent: Agent id.
            strategy: What the agent says it is trying, 1 to 64 characters.
            parents: Solutions it was derived from, ids or unique prefixes, at most 16.
            note: Free text, at most 2000 characters.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
            RequestError: The solution is for another problem, or a limit is exceeded.
        """
        strategy = checked("strategy", strategy, MAX_STRATEGY_CHARS)
        note = checked("note", note, MAX_NOTE_CHARS, shortest=0)
        if len(parents) > MAX_PARENTS:
            raise RequestError(f"{len(parents)} parents; at most {MAX_PARENTS} are allowed.")
        with self._store.write() as db:
            version = current_problem(db, problem)
            solution = full_id(db, solution_id)
            solves = next(db.query(queries.SOLUTION, {"id": solution}))["problem"]
            if solves != problem:
                raise RequestError(f"solution {solution[:8]} is for {solves!r}, not {problem!r}.")
            agent_id = number(Prefix.AGENT, agent)
            run_id = run_of(db, agent_id)
            ancestors = dict.fromkeys(full_id(db, parent) for parent in parents)
            same = {"agent": agent_id, "problem": version["id"], "solution": solution}
            if earlier := next(db.query(queries.SAME_SUBMISSION, same), None):
                return _submission(db, earlier["id"])
            row = {
                "run_id": run_id,
                "agent_id": agent_id,
                "problem_id": version["id"],
                "solution_id": solution,
                "strategy": strategy,
                "note": note,
                "created_at": self._clock(),
            }
            added = insert(db, "submissions", row)
            db.table("submission_parents").insert_all(
                {"submission_id": added, "position": position, "solution_id": parent}
                for position, parent in enumerate(ancestors)
            )
            payload = {"problem": problem, "solution": solution, "strategy": strategy}
            append_event(db, run_id, agent_id, "submission", payload, row["created_at"])
            return _submission(db, added)

    def submission(self, submission_id: str) -> Submission:
        """One attempt; ``UnknownId`` if there is none of that id."""
        row_id = number(Prefix.SUBMISSION, submission_id)
        with self._store.read() as db:
            return _submission(db, row_id)


def current_problem(db: Database, name: str) -> dict[str, Any]:
    """Row of the current version of ``name``.

    Raises:
        UnknownProblem: It was never registered.
    """
    row = next(db.query(queries.CURRENT_PROBLEM, {"name": name}), None)
    if row is None:
        raise UnknownProblem(name, [known["name"] for known in db.query(queries.CURRENT_PROBLEMS)])
    return row


def full_id(db: Database, prefix: str) -> str:
    """As ``Catalogue.resolve_solution``, inside an open transaction."""
    wanted = prefix.strip().lower()
    if not _PREFIX.fullmatch(wanted):
        raise UnknownId("solution", prefix, "A solution id is 32 hex digits; 8 or more will do.")
    found = [row[0] for row in db.execute(queries.SOLUTIONS_BY_PREFIX, {"prefix": wanted})]
    if not found:
        raise UnknownId("solution", prefix, "No solution's id begins like this.")
    if len(found) > 1:
        raise UnknownId("solution", prefix, "Several ids begin like this; give more digits.")
    return str(found[0])


def _problem(row: dict[str, Any]) -> ProblemRow:
    return ProblemRow(**{key: value for key, value in row.items() if key != "id"})


def _submission(db: Database, row_id: int) -> Submission:
    row = next(db.query(queries.where(queries.SUBMISSION, ["s.id = :id"]), {"id": row_id}), None)
    if row is None:
        raise UnknownId("submission", short(Prefix.SUBMISSION, row_id))
    return Submission(
        id=short(Prefix.SUBMISSION, row["id"]),
        run=optional_short(Prefix.RUN, row["run_id"]),
        agent=short(Prefix.AGENT, row["agent_id"]),
        problem=row["problem"],
        solution_id=row["solution_id"],
        strategy=row["strategy"],
        parents=tuple(json.loads(row["parents"])),
        note=row["note"],
        created_at=row["created_at"],
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
