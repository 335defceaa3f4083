"""Texts that agents write: cleaned and measured before they are stored."""

from __future__ import annotations

import unicodedata

from kernelarc.guard.errors import RequestError

MAX_STRATEGY_CHARS = 64


def checked(name: str, text: str, longest: int, *, shortest: int = 1) -> str:
    """``text`` without invisible characters and surrounding space, if its length is allowed.

    Args:
        name: What the text is, for the error.
        text: Any text; line breaks and tabs are kept, other control and format characters and
            lone surrogates are not.
        longest: Most characters that may remain.
        shortest: Fewest.

    Raises:
        RequestError: Too short or too long.
    """
    # Category C: control, format (such as those that turn the reading direction), surrogate.
    kept = (c for c in text if c in "\n\t" or not unicodedata.category(c).startswith("C"))
    cleaned = "".join(kept).strip()
    if not shortest <= len(cleaned) <= longest:
        raise RequestError(
            f"{name} has {len(cleaned)} characters; {shortest} to {longest} are allowed."
        )
    return cleaned
