"""Makes text of unknown origin safe to show on a terminal."""

from __future__ import annotations

import unicodedata

from rich.text import Text

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, reorder or hide text, or have no glyph."""


def plain(text: object, *, limit: int = 200) -> str:
    """One line of visible characters, cut to ``limit``.

    Escape sequences lose their escape, line breaks and tabs become spaces, characters that
    reorder or hide their neighbours are dropped.
    """
    kept = (c for c in str(text) if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    shown = " ".join("".join(kept).split())
    return shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "…"


def safe(text: object, style: str = "", *, limit: int = 200) -> Text:
    """``plain`` text for rich, in which markup has no meaning."""
    return Text(plain(text, limit=limit), style=style)
