"""How text and numbers are shown: text of unknown origin made safe, numbers with their interval."""

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


def speedup_text(median: float | None, low: float | None, high: float | None) -> str:
    """A speed-up with its interval, as far as they were measured."""
    if median is None:
        return "–"
    return f"{median:.2f}x" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")


def latency_text(latency_us: float | None) -> str:
    """A latency to at least three digits, in microseconds, or milliseconds from 100 000 us on."""
    if latency_us is None:
        return "–"
    if latency_us >= 1e5:
        return f"{latency_us / 1e3:,.1f} ms"
    decimals = 0 if latency_us >= 100 else 1 if latency_us >= 10 else 2
    return f"{latency_us:,.{decimals}f} µs"
