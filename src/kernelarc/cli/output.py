"""Output and exit codes of all commands.

0 ok, 1 the candidate was rejected, the run promoted nothing or the selftest found a difference,
2 bad input, 3 the guard or device is unavailable. Errors go to stderr as text, or to stdout as
``{"error": ..., "kind": ...}`` with ``--json``.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from kernelarc.guard.errors import KernelArcError, RequestError

if TYPE_CHECKING:
    from rich.console import Console

OK = 0
REJECTED = 1
BAD_INPUT = 2
UNAVAILABLE = 3


def console(*, stderr: bool = False) -> Console:
    """A terminal to write to; plain text where it is not a terminal.

    What looks like markup or the code of an emoji is text, in table cells too: names and messages
    are other people's, and ``[cpu]`` is the name of an extra. Styles are given as ``Text``.
    """
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def progress_line(text: str) -> Iterator[Callable[[str], None]]:
    """A line on stderr that shows ``text`` while something goes on, and what it is called with."""
    from rich.text import Text

    # As Text: a status takes a string for markup, whatever its console does.
    with console(stderr=True).status(Text(text)) as status:
        yield lambda now: status.update(Text(now))


def harmless(text: str) -> str:
    """Text of others without what a terminal would obey: no control characters but line and tab."""
    return "".join(c for c in text if c in "\n\t" or c.isprintable())


def print_json(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document on stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """Turn the package's errors into a message and an exit code; unwraps exception groups."""
    error: KernelArcError | None = None
    try:
        yield
    except* KernelArcError as group:
        error = first_error(group)
    # Raised out here: within except*, early versions of Python 3.11 wrap it in a group.
    if error is None:
        return
    if as_json:
        print_json({"error": str(error), "kind": type(error).__name__})
    else:
        # Not through rich: an error may quote a candidate's text.
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(BAD_INPUT if isinstance(error, RequestError) else UNAVAILABLE)


def first_error(group: BaseExceptionGroup[KernelArcError]) -> KernelArcError:
    """The first error inside nested groups."""
    inner = group.exceptions[0]
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
