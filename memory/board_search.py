"""Which insights a page of the board holds: scopes, filters, ranking, cursors.

Scopes are words in the full-text index (``p7`` for a problem, ``t...`` for category and
device), so that a search touches only its own problem's postings, however large the board is.
BM25 scores every match before it can order any; so it is given only the newest ``WINDOW``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import RequestError
from kernelarc.memory import queries

WINDOW = 5_000
"""Newest matches among which relevance is weighed. Scoring so many takes about 10 ms
(``benchmarks/board_scale.py``)."""

MAX_WORDS = 32
"""Words of a query that count; the rest is ignored."""

_WORD = re.compile(r"\w+")
_NEWEST_CURSOR = re.compile(r"n-([01])-(\d{1,18})")
_SEARCH_CURSOR = re.compile(r"q-(all|any)-(\d{1,18})-(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be on the page."""

    problem: dict[str, Any]
    """Row of the problem's current version."""
    related_on: str | None
    kinds: tuple[str, ...]
    strategy: str | None
    agent_id: int | None
    verified_only: bool
    cap: int | None

    @property
    def values(self) -> dict[str, Any]:
        """Values of the parameters of all conditions."""
        kinds = {f"kind{position}": kind for position, kind in enumerate(self.kinds)}
        return kinds | {
            "problem": self.problem["id"],
            "category": self.problem["category"],
            "device": self.related_on,
            "strategy": self.strategy,
            "agent": self.agent_id,
        }

    @property
    def scopes(self) -> list[str]:
        """Conditions, one for each part of the board."""
        own = [queries.OWN_INSIGHTS]
        return own if self.related_on is None else [*own, queries.RELATED_INSIGHTS]

    @property
    def conditions(self) -> list[str]:
        """Conditions on single insights."""
        found = ["i.id >= :floor"]
        if self.kinds:
            names = ", ".join(f":kind{position}" for position in range(len(self.kinds)))
            found.append(f"i.kind IN ({names})")
        if self.strategy is not None:
            found.append("i.strategy = :strategy")
        if self.agent_id is not None:
            found.append("i.agent_id = :agent")
        if self.verified_only:
            found.append("i.verified = 1")
        return found


@dataclass(frozen=True, slots=True)
class Found:
    """Insights of one page, best first."""

    ids: Sequence[int]
    more: bool
    """Whether there are others behind them."""
    cursor_after: Callable[[int], str]
    """Cursor for what follows the first so many of ``ids``, at least one."""


def scope_tokens(problem_id: int, category: str, device_name: str) -> str:
    """What is indexed beside an insight's text to find it by problem, or by relation."""
    return f"{_problem_token(problem_id)} {_relation_token(category, device_name)}"


def words(query: str) -> list[str]:
    """The searchable words of any text, at most ``MAX_WORDS``, each once."""
    found = [word for word in _WORD.findall(query) if any(c.isalnum() for c in word)]
    return list(dict.fromkeys(found))[:MAX_WORDS]


def newest(db: Database, filters: Filters, cursor: str | None, limit: int) -> Found:
    """A page in the order verified first, then newest first."""
    verified, before = _after_newest(cursor)
    values = filters.values | {"floor": _floor(db, filters), "before": before}
    rows = list(db.query(newest_sql(filters, verified=verified), values | {"limit": limit + 1}))
    page = rows[:limit]

    def cursor_after(count: int) -> str:
        last = page[count - 1]
        return f"n-{last['verified']}-{last['id']}"

    return Found([row["id"] for row in page], len(rows) > limit, cursor_after)


def newest_sql(filters: Filters, *, verified: int) -> str:
    """The query of ``newest``: from ``:before`` on among the verified (1) or unverified (0)."""
    parts = []
    for part in (0, 1) if verified else (0,):
        bound = ["i.id < :before"] if part == verified else []
        state = [f"i.verified = {part:d}"]
        parts += [
            queries.where(queries.BOARD_PART, [scope, *state, *bound, *filters.conditions])
            for scope in filters.scopes
        ]
    return queries.merged(parts, queries.BOARD_PAGE_ORDER)


def search(
    db: Database, filters: Filters, wanted: Sequence[str], cursor: str | None, limit: int
) -> Found:
    """A page in the order verified first, then by relevance.

    Further pages keep to what was on the board when the first was read.
    """
    mode, top, skip = _after_search(db, cursor)
    if not wanted:
        return Found([], False, str)
    floor = _floor(db, filters)
    if mode is None:
        probe = {"match": _match(filters, wanted, "all"), "floor": floor, "top": top, "skip": 0}
        mode = "all" if db.execute(queries.BOARD_MATCH_FLOOR, probe).fetchone() else "any"
    match = {"match": _match(filters, wanted, mode), "floor": floor, "top": top}
    window = db.execute(queries.BOARD_MATCH_FLOOR, match | {"skip": WINDOW - 1}).fetchone()
    values = filters.values | match | {"limit": limit + 1, "skip": skip}
    if window:
        values["floor"] = window[0]
    matching = ["insights_fts MATCH :match", "f.rowid BETWEEN :floor AND :top"]
    sql = queries.where(
        queries.BOARD_SEARCH, matching + filters.conditions, queries.BOARD_SEARCH_ORDER
    )
    ids = [row[0] for row in db.execute(sql, values)]

    def cursor_after(count: int) -> str:
        return f"q-{mode}-{top}-{skip + count}"

    return Found(ids[:limit], len(ids) > limit, cursor_after)


def _floor(db: Database, filters: Filters) -> int:
    """Number of the oldest insight that the capped board still shows."""
    if filters.cap is None:
        return 0
    if filters.cap <= 0:
        return _newest_id(db) + 1
    parts = [
        queries.where(queries.BOARD_PART, [scope, f"i.verified = {part:d}"])
        for scope in filters.scopes
        for part in (0, 1)
    ]
    sql = queries.merged(parts, queries.BOARD_FLOOR_ORDER)
    row = db.execute(sql, filters.values | {"skip": filters.cap - 1}).fetchone()
    return int(row[0]) if row else 0


def _match(filters: Filters, wanted: Sequence[str], mode: str) -> str:
    """The full-text expression; words are quoted, so none of them can be an operator."""
    tokens = [_problem_token(filters.problem["id"])]
    if filters.related_on is not None:
        tokens.append(_relation_token(filters.problem["category"], filters.related_on))
    operator = " AND " if mode == "all" else " OR "
    quoted = operator.join(f'"{word}"' for word in wanted)
    return f"(scope : ({' OR '.join(tokens)})) AND ({{text strategy}} : ({quoted}))"


def _after_newest(cursor: str | None) -> tuple[int, int]:
    """Rank of the last insight of the page before: whether verified, and its number."""
    if cursor is None:
        return 1, 2**62
    parts = _NEWEST_CURSOR.fullmatch(cursor)
    if parts is None:
        raise _malformed(cursor)
    return int(parts[1]), int(parts[2])


def _after_search(db: Database, cursor: str | None) -> tuple[str | None, int, int]:
    """Mode, newest insight and number of insights already shown."""
    if cursor is None:
        return None, _newest_id(db), 0
    parts = _SEARCH_CURSOR.fullmatch(cursor)
    if parts is None:
        raise _malformed(cursor)
    return parts[1], int(parts[2]), int(parts[3])


def _malformed(cursor: str) -> RequestError:
    return RequestError(
        f"cursor {cursor[:60]!r} does not belong to this reading; pass next_cursor back "
        "unchanged, with the same filters, or leave it out to start again."
    )


def _newest_id(db: Database) -> int:
    return int(db.execute(queries.NEWEST_INSIGHT).fetchone()[0])


def _problem_token(problem_id: int) -> str:
    return f"p{problem_id}"


def _relation_token(category: str, device_name: str) -> str:
    digest = hashlib.sha256(f"{category}\0{device_name}".encode()).digest()
    return f"t{int.from_bytes(digest[:8], 'big')}"
