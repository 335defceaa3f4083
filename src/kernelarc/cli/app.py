"""All commands. Each group lives in its own module, which is imported when it is used.

A client starts ``kernelarc stdio`` and waits for it: this module must stay light.
"""

from __future__ import annotations

from typing import Annotated

import typer

from kernelarc._version import __version__
from kernelarc.cli import board, doctor, evaluate, install, problems, report, run, selftest, serve
from kernelarc.cli.usage import Commands

app = typer.Typer(
    name="kernelarc",
    cls=Commands,
    help="LLM agents optimise kernels; a guard that cannot be fooled decides.",
    epilog="Exit codes: 0 ok, 1 the candidate was rejected, the run promoted nothing or the "
    "selftest found a difference, "
    "2 bad input, 3 the guard or device is unavailable.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kernelarc {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    del version


app.command("doctor", epilog="Example: `kernelarc doctor --json`")(doctor.doctor)
app.add_typer(problems.app, name="problems")
app.command("eval", epilog="Example: `kernelarc eval rmsnorm my_kernel.cpp`")(evaluate.evaluate)
app.command("selftest", epilog="Example: `kernelarc selftest --kind adversarial`")(
    selftest.selftest
)
app.command("run", epilog="Example: `kernelarc run rmsnorm softmax --agents 4 --minutes 3`")(
    run.run
)
app.command("resume", epilog="Example: `kernelarc resume r_1`")(run.resume)
app.command("report", epilog="Example: `kernelarc report r_1 -o report.html`")(report.report)
app.command("board", epilog="Example: `kernelarc board rmsnorm --query vectorise`")(board.board)
app.command("leader", epilog="Example: `kernelarc leader rmsnorm --source`")(board.leader)
app.command("stdio", epilog="Example: `kernelarc stdio` (MCP clients start it)")(serve.stdio)
app.command("serve-socket", hidden=True)(serve.serve_socket)
app.command("install", epilog="Example: `kernelarc install claude-desktop --write`")(
    install.install
)
