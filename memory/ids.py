"""Short ids with a prefix, as agents see them, and the row numbers behind them."""

from __future__ import annotations

from enum import StrEnum

from kernelarc.guard.errors import UnknownId

_DIGITS = 18
"""Row numbers with more digits than this may not fit into SQLite's 64 bits."""


class Prefix(StrEnum):
    """First letter of an id; the member's name says what it numbers."""

    INSIGHT = "i"
    JOB = "j"
    VERDICT = "v"
    BENCHMARK = "b"
    SUBMISSION = "s"
    RUN = "r"
    AGENT = "a"
    PROMOTION = "p"
    EVENT = "e"
    INSTANCE = "n"


def short(prefix: Prefix, number: int) -> str:
    """The id of row ``number``: ``j_8``."""
    return f"{prefix}_{number}"


def optional_short(prefix: Prefix, number: int | None) -> str | None:
    """As ``short``; ``None`` for ``None``."""
    return None if number is None else short(prefix, number)


def number(prefix: Prefix, text: str) -> int:
    """The row number in an id.

    Raises:
        UnknownId: ``text`` does not have the form of such an id.
    """
    head, separator, digits = text.strip().partition("_")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
    if head != prefix or not separator or not is_number:
        raise UnknownId(prefix.name.lower(), text, f"Such ids look like {prefix}_12.")
    return int(digits)


def optional_number(prefix: Prefix, text: str | None) -> int | None:
    """As ``number``; ``None`` for ``None``."""
    return None if text is None else number(prefix, text)
