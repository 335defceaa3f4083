"""``kernelarc selftest``: try to fool the guard of this host, and to wrong it with honest code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc.cli.output import OK, REJECTED, console, print_json, progress_line, reported
from kernelarc.cli.settings import HomeOption, IsolationOption, JsonOption, checked_isolation

if TYPE_CHECKING:
    from rich.text import Text

    from kernelarc.guard.pipeline import GuardSettings
    from kernelarc.guard.selftest.sample import Sample
    from kernelarc.guard.selftest.tally import Row, Tally

PROBE = "honest/rmsnorm-cpp"
CALL_TIMEOUT_S = 6.0
COMPILE_TIMEOUT_S = 20.0
"""Shorter than a server's: the suite has samples that use them up."""


def selftest(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Samples, as --list names them. Default: all.", show_default=False),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only these: adversarial or honest.", show_default=False)
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="Judge all so many times.")] = 1,
    without_screen: Annotated[
        bool,
        typer.Option(
            "--without-screen",
            help="Judge with the static screen off: sandbox and protocol must hold alone.",
        ),
    ] = False,
    only_list: Annotated[
        bool, typer.Option("--list", help="Say what there is; judge none.")
    ] = False,
    isolation: IsolationOption = "reduced",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge adversarial and honest samples with the guard of this host.

    Exit code 1 when a verdict is not as expected, or when a sample left anything behind: a
    process, a file, a changed judge. Samples for devices and compilers that are not here are
    skipped and counted as such. Nothing is stored.
    """
    import anyio

    from kernelarc.guard.errors import RequestError
    from kernelarc.guard.selftest import sample as samples
    from kernelarc.guard.selftest.tally import count

    with reported(as_json=as_json):
        if kind is not None and kind not in samples.KINDS:
            raise RequestError(f"--kind {kind!r} is unknown; it takes adversarial or honest.")
        loaded = [samples.load(name) for name in samples.chosen(names or [], kind)]
        if not loaded:
            raise RequestError("there are no samples: the installation is incomplete.")
        if only_list:
            _list(loaded, as_json=as_json)
            raise typer.Exit(OK)
        level = checked_isolation(isolation)
        began = monotonic()
        with _private_home(home) as folder:
            from kernelarc.guard.pipeline import GuardSettings

            settings = GuardSettings(
                home=Path(folder),
                isolation=level,
                compile_timeout_s=COMPILE_TIMEOUT_S,
                call_timeout_s=CALL_TIMEOUT_S,
                screen=not without_screen,
            )
            rows = anyio.run(_judge, settings, loaded * repeat, _printer(as_json=as_json))
        tally = count(rows, monotonic() - began)
        if as_json:
            print_json(
                {
                    "screen": settings.screen,
                    **tally.model_dump(mode="json"),
                    "ok": tally.ok,
                    "rows": [row.model_dump(mode="json") for row in rows],
                }
            )
        else:
            _show(rows, tally)
        raise typer.Exit(OK if tally.ok else REJECTED)


def _private_home(home: Path | None) -> TemporaryDirectory[str]:
    """A folder for this run: a server may be at work in the home, and what is new there counts."""
    from kernelarc.cli.settings import home_folder

    return TemporaryDirectory(prefix="selftest-", dir=home_folder(home))


async def _judge(
    settings: GuardSettings, samples: list[Sample], show: Callable[[Row], None] | None
) -> list[Row]:
    from kernelarc.guard.pipeline import open_guard
    from kernelarc.guard.selftest.sample import load
    from kernelarc.guard.selftest.suite import Suite

    rows: list[Row] = []
    with progress_line("starting the guard") as update:

        def progress(phase: str, done: int, total: int) -> None:
            if show is not None:
                step = f" {done + 1}/{total}" if total else ""
                update(f"{len(rows) + 1}/{len(samples)}  {phase}{step}")

        async with open_guard(settings) as guard:
            async for row in Suite(guard, load(PROBE)).run(samples, progress):
                rows.append(row)
                if show is not None:
                    show(row)
    return rows


def _printer(*, as_json: bool) -> Callable[[Row], None] | None:
    """Prints a line for each row that is not as expected, as soon as it is known."""
    if as_json:
        return None
    err = console(stderr=True)

    def show(row: Row) -> None:
        if row.skipped is None and not row.as_expected:
            err.print(_result(row), row.name, row.message, *row.left)

    return show


def _result(row: Row) -> Text:
    from rich.text import Text

    if row.skipped is not None:
        return Text("skipped", "yellow")
    return Text("yes", "green") if row.as_expected else Text("NO", "bold red")


def _show(rows: list[Row], tally: Tally) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(
        Column("sample", no_wrap=True),
        "kind",
        Column("expected", overflow="fold"),
        Column("got", overflow="fold"),
        "as expected",
        "s",
    )
    for row in rows:
        got = Text(row.got or f"({row.skipped})")
        for sentence in row.left:
            got.append(f"\n{sentence}", "bold red")
        table.add_row(
            row.name.partition("/")[2],
            row.kind,
            " or ".join(row.expected),
            got,
            _result(row),
            f"{row.seconds:.1f}" if row.skipped is None else "",
        )
    out = console()
    out.print(table)
    reasons = "".join(f" ({why}: {n})" for why, n in tally.skipped_for.items())
    out.print(
        Text(
            f"{tally.samples} samples: {tally.as_expected} as expected, {tally.false_accepts} "
            f"false accepts, {tally.false_rejects} false rejects, {tally.left_something} left "
            f"something behind, {tally.skipped} skipped{reasons}; {tally.seconds:.0f} s",
            "bold green" if tally.ok else "bold red",
        )
    )


def _list(samples: list[Sample], *, as_json: bool) -> None:
    if as_json:
        print_json([_entry(sample) for sample in samples])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("sample", "family", "language", "device", "what it does")
    for sample in samples:
        e = sample.expectation
        table.add_row(sample.name, e.family, e.language.value, e.device, Text(e.why))
    console().print(table)


def _entry(sample: Sample) -> dict[str, Any]:
    return {"name": sample.name, "kind": sample.kind} | sample.expectation.model_dump(mode="json")
