"""The board: what agents conclude, found again by problem, by relation and by words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import RequestError, UnknownId
from kernelarc.memory import board_search, evidence, queries
from kernelarc.memory.board_search import Filters
from kernelarc.memory.catalogue import current_problem
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, number, optional_short, short
from kernelarc.memory.rows import BoardPage, Insight, InsightKind, PostedInsight
from kernelarc.memory.runs import append_event, run_of
from kernelarc.memory.texts import MAX_STRATEGY_CHARS, checked

MAX_TEXT_CHARS = 2000
MAX_EVIDENCE = 16
MAX_PAGE = 200


class Board:
    """Insights of all agents. See ``Archive`` for the rules of use.

    Texts are other agents' words. The board stores them as they were posted, except for control
    characters; whoever shows them marks them as data.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def post(
        self,
        problem: str,
        kind: InsightKind,
        strategy: str,
        text: str,
        *,
        agent: str,
        device_name: str,
        evidence_ids: Sequence[str] = (),
    ) -> PostedInsight:
        """Post a conclusion; the same one by the same agent only once.

        It is shown as verified while the guard's records bear it out: a success needs evidence
        that passed verification or was kept by a benchmark (and was not rejected since), a
        failure evidence that was judged at all. Evidence about another problem, or another
        version of this one, is kept but verifies nothing; records that arrive later count.

        Args:
            problem: Name of a registered problem.
            kind: What it claims.
            strategy: What it is about, 1 to 64 characters.
            text: The conclusion, 1 to 2000 characters.
            agent: Agent id.
            device_name: Model of the device that it was found on.
            evidence_ids: At most 16 solution (or unique prefix), verdict, benchmark, submission
                or job ids.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
            RequestError: A text is empty or too long, or there is too much evidence.
        """
        strategy = checked("strategy", strategy, MAX_STRATEGY_CHARS)
        text = checked("text", text, MAX_TEXT_CHARS)
        if len(evidence_ids) > MAX_EVIDENCE:
            raise RequestError(
                f"{len(evidence_ids)} pieces of evidence; at most {MAX_EVIDENCE} are allowed. "
                "Name the ones that decide."
            )
        agent_id = number(Prefix.AGENT, agent)
        with self._store.write() as db:
            version = current_problem(db, problem)
            run_id = run_of(db, agent_id)
            records = [evidence.find(db, record) for record in evidence_ids]
            identity = {
                "agent": agent_id,
                "problem": version["id"],
                "kind": str(kind),
                "digest": _text_digest(text),
            }
            known = db.execute(queries.SAME_INSIGHT, identity).fetchone()
            if known:
                return PostedInsight(_load(db, [known[0]])[0], created=False)
            now = self._clock()
            row = {
                "problem_id": version["id"],
                "kind": str(kind),
                "strategy": strategy,
                "text": text,
                "text_digest": identity["digest"],
                "scope": board_search.scope_tokens(version["id"], version["category"], device_name),
                "agent_id": agent_id,
                "run_id": run_id,
                "category": version["category"],
                "device_name": device_name,
                "verified": 0,
                "created_at": now,
            }
            row_id = insert(db, "insights", row)
            evidence.attach(db, row_id, records)
            insight = _load(db, [row_id])[0]
            payload = {
                "insight": insight.id,
                "problem": problem,
                "kind": str(kind),
                "strategy": strategy,
                "verified": insight.verified,
            }
            append_event(db, run_id, agent_id, "insight", payload, now)
            return PostedInsight(insight, created=True)

    def read(
        self,
        problem: str,
        *,
        query: str | None = None,
        kinds: Collection[InsightKind] = (),
        strategy: str | None = None,
        agent: str | None = None,
        verified_only: bool = False,
        related_on: str | None = None,
        limit: int = 20,
        max_chars: int | None = None,
        cursor: str | None = None,
        board_cap: int | None = None,
    ) -> BoardPage:
        """One page of a problem's board: verified first, then newest first.

        With a query: verified first, then by relevance (BM25 over text and strategy, words
        stemmed as English). Insights with all its words are found; if there are none, those
        with any of them. Relevance is weighed among the newest 5,000 that match.

        Args:
            problem: Name of a registered problem.
            query: Free text; any characters. Blank is as ``None``; without a letter or digit
                it finds nothing.
            kinds: Only these kinds; empty for all.
            strategy: Only this strategy.
            agent: Only this agent's, agent id.
            verified_only: Leave the unverified out.
            related_on: Name of a device: also insights on other problems of the same category
                found on that device.
            limit: At most so many, 1 to 200.
            max_chars: At most so many characters of text on the page, but always one insight.
            cursor: ``next_cursor`` of the page before, with the same filters.
            board_cap: The board is as if it kept only its newest ``board_cap`` insights; 0 for
                an empty one. For experiments with bounded memory.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
            RequestError: The limit or the cursor is not one.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise RequestError(f"limit {limit} is not between 1 and {MAX_PAGE}.")
        agent_id = None if agent is None else number(Prefix.AGENT, agent)
        words = None if query is None or not query.strip() else board_search.words(query)
        with self._store.read() as db:
            filters = Filters(
                problem=current_problem(db, problem),
                related_on=related_on,
                kinds=tuple(sorted(str(kind) for kind in kinds)),
                strategy=strategy,
                agent_id=agent_id,
                verified_only=verified_only,
                cap=board_cap,
            )
            if words is None:
                found = board_search.newest(db, filters, cursor, limit)
            else:
                found = board_search.search(db, filters, words, cursor, limit)
            insights = _load(db, found.ids)
        kept = _within(insights, max_chars)
        more = found.more or kept < len(insights)
        next_cursor = found.cursor_after(kept) if kept and more else None
        return BoardPage(tuple(insights[:kept]), next_cursor)

    def insight(self, insight_id: str) -> Insight:
        """One insight; ``UnknownId`` if there is none of that id."""
        row_id = number(Prefix.INSIGHT, insight_id)
        with self._store.read() as db:
            found = _load(db, [row_id])
        if not found:
            raise UnknownId("insight", insight_id)
        return found[0]


def as_insight(row: dict[str, Any]) -> Insight:
    """The row of ``queries.INSIGHT`` as it is shown."""
    return Insight(
        id=short(Prefix.INSIGHT, row["id"]),
        problem=row["problem"],
        kind=InsightKind(row["kind"]),
        strategy=row["strategy"],
        text=row["text"],
        evidence=tuple(json.loads(row["evidence"])),
        verified=bool(row["verified"]),
        agent=short(Prefix.AGENT, row["agent_id"]),
        agent_name=row["agent_name"],
        run=optional_short(Prefix.RUN, row["run_id"]),
        device_name=row["device_name"],
        created_at=row["created_at"],
    )


def _load(db: Database, row_ids: Sequence[int]) -> list[Insight]:
    """The insights of those numbers, in that order."""
    sql = queries.where(queries.INSIGHT, [queries.IN_IDS])
    rows = db.query(sql, {"ids": json.dumps(row_ids)})
    by_id = {row["id"]: as_insight(row) for row in rows}
    return [by_id[row_id] for row_id in row_ids if row_id in by_id]


def _within(insights: Sequence[Insight], max_chars: int | None) -> int:
    """How many from the front fit into ``max_chars``, at least one if there is one."""
    if max_chars is None:
        return len(insights)
    used = 0
    for kept, insight in enumerate(insights):
        used += len(insight.text)
        if used > max_chars:
            return max(kept, 1)
    return len(insights)


def _text_digest(text: str) -> str:
    normalised = " ".join(text.casefold().split())
    return hashlib.sha256(normalised.encode()).hexdigest()
