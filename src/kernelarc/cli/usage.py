"""Errors in a command line itself: one sentence like every other error, JSON with ``--json``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import typer
from typer.core import TyperGroup

from kernelarc.cli.output import BAD_INPUT, OK, print_json

# The base of all usage errors. By inheritance: typer brings its own click, or uses another one.
_UsageError = cast("type[Exception]", typer.BadParameter.__base__)


class Commands(TyperGroup):
    """The root command."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401 - as declared by typer
    ) -> Any:  # noqa: ANN401 - as declared by typer
        """Run a command line and exit with the code of its outcome."""
        words = list(sys.argv[1:] if args is None else args)
        name = prog_name or "kernelarc"
        try:
            code = super().main(words, name, complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            _tell(error, as_json="--json" in words)
            code = BAD_INPUT
        except typer.Abort:
            code = 130
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else OK)
        return code


def _tell(error: Any, *, as_json: bool) -> None:  # noqa: ANN401 - a usage error of either click
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        # Only a group was named; typer has shown its help already, if the message is empty.
        if message:
            typer.echo(message, err=True)
        return
    command = error.ctx.command_path if error.ctx is not None else "kernelarc"
    text = f"{message.rstrip('.')}. `{command} --help` shows what is allowed."
    if as_json:
        print_json({"error": text, "kind": type(error).__name__})
    else:
        print(f"error: {text}", file=sys.stderr)  # noqa: T201
