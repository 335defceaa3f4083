"""Output and exit codes of all commands.

0 ok, 1 the candidate was rejected, 2 bad input, 3 the guard or device is unavailable. Errors go to
stderr as text, or to stdout as ``{"error": ..., "kind": ...}`` with ``--json``.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from kernelarc.guard.errors import KernelArcError, RequestError

if TYPE_CHECKING:
    from rich.console import Console

OK = 0
REJECTED = 1
BAD_INPUT = 2
UNAVAILABLE = 3


def console(*, stderr: bool = False) -> Console:
    """A terminal to write to; plain text where it is not a terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document on stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """Turn the package's errors into a message and an exit code; unwraps exception groups."""
    try:
        yield
    except* KernelArcError as group:
        error = _first(group)
        if as_json:
            print_json({"error": str(error), "kind": type(error).__name__})
        else:
            # Not through rich: an error may quote a candidate's text.
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
        code = BAD_INPUT if isinstance(error, RequestError) else UNAVAILABLE
        raise typer.Exit(code) from None


class Commands(TyperGroup):
    """The root command: its own usage errors look like all others, with ``--json`` too."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401 - as declared by typer
    ) -> Any:  # noqa: ANN401 - as declared by typer
        """Run a command line; exits with the code of the outcome."""
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                words, prog_name or "kernelarc", complete_var, False, windows_expand_args, **extra
            )
        except typer.Abort:
            sys.exit(130)
        except typer.BadParameter.__mro__[2] as error:
            _usage(error, as_json="--json" in words)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else OK)
        return code


def _usage(error: Any, *, as_json: bool) -> NoReturn:  # noqa: ANN401 - click is vendored
    context = error.ctx
    if not words_of(error):  # a group without a subcommand: typer has printed its help
        typer.echo(context.get_help(), err=True)
        sys.exit(BAD_INPUT)
    command = context.command_path if context is not None else "kernelarc"
    sentence = words_of(error).rstrip(".")
    text = f"{sentence}. `{command} --help` shows what is allowed."
    if as_json:
        print_json({"error": text, "kind": type(error).__name__})
    else:
        print(f"error: {text}", file=sys.stderr)  # noqa: T201
    sys.exit(error.exit_code)


def _first(group: BaseExceptionGroup[KernelArcError]) -> KernelArcError:
    inner = group.exceptions[0]
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
