"""What others wrote is shown as they wrote it: brackets and colons are no markup, anywhere."""

import io
from types import SimpleNamespace

import pytest

from kernelarc.cli import board, doctor, evaluate, output, problems, selftest
from kernelarc.guard.errors import RequestError
from kernelarc.guard.schema import (
    AdmissionCheck,
    AdmissionReport,
    EvaluationStatus,
    Isolation,
    Verdict,
)
from kernelarc.guard.schema.results import Wall
from kernelarc.guard.selftest.tally import Row, count
from kernelarc.memory.rows import InsightKind

HOSTILE = "[cpu,triton] [red]a[/red] :smile: [/no]"


def shown(capsys):
    """Everything printed so far, as one line per paragraph."""
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_a_console_takes_brackets_and_colons_for_text(capsys):
    from rich.table import Table

    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    output.console().print(table)
    output.console(stderr=True).print(HOSTILE)
    assert shown(capsys).count(HOSTILE) == 4


def test_the_line_of_progress_takes_them_for_text(monkeypatch):
    from rich.console import Console

    terminal = Console(file=io.StringIO(), force_terminal=True, width=200, markup=False)
    monkeypatch.setattr(output, "console", lambda stderr=False: terminal)
    with output.progress_line(f"{HOSTILE} first"):
        pass
    with output.progress_line("") as update:
        update(f"{HOSTILE} second")
    written = terminal.file.getvalue()
    assert f"{HOSTILE} first" in written
    assert f"{HOSTILE} second" in written


def test_an_error_may_quote_them(capsys):
    with pytest.raises(output.typer.Exit), output.reported():
        raise RequestError(HOSTILE)
    assert shown(capsys) == f"error: {HOSTILE}"


def test_a_mistyped_word_is_quoted(call):
    assert HOSTILE in call("eval", "rmsnorm", "x", HOSTILE).err
    assert HOSTILE in call(HOSTILE).err


def test_the_name_of_a_problem_is_quoted(call, tmp_path):
    call("problems", "show", HOSTILE).sentence(HOSTILE)
    call("problems", "check", HOSTILE).sentence(HOSTILE)
    call("eval", HOSTILE, tmp_path).sentence(HOSTILE)
    call("board", HOSTILE).sentence(HOSTILE)


def test_the_doctor_names_extras_with_their_brackets(call, monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda _: None)
    answer = call("doctor", "--no-start")
    assert answer.code == 3
    assert "needs torch: pip install 'kernelarc[cpu]'" in answer.out
    assert "needs triton: pip install 'kernelarc[cpu,triton]'" in answer.out
    assert "not ready: torch is not installed: pip install 'kernelarc[cpu]'." in answer.out


def test_the_doctor_shows_folders_programs_and_walls_as_they_are(capsys):
    facts = dict.fromkeys(("kernelarc", "python", "platform", "home", "database"), HOSTILE)
    wall = {"name": HOSTILE, "stands": False, "detail": HOSTILE}
    environment = {"device_name": HOSTILE, "copy_gbps": 1.0, "peak_gflops": 2.0}
    doctor._show(
        facts
        | {
            "packages": {"torch": HOSTILE},
            "programs": {"g++": HOSTILE},
            "isolation": {"level": HOSTILE, "walls": [wall]},
            "languages": {HOSTILE: HOSTILE},
            "environment": environment,
            "problem": HOSTILE,
        }
    )
    assert shown(capsys).count(HOSTILE) == 5 + 2 + 3 + 2 + 2


def test_the_text_of_a_candidates_error_is_shown(capsys):
    verdict = Verdict(
        guard_version="1",
        problem="rmsnorm",
        solution_id="1" * 32,
        language="cpp",
        status=EvaluationStatus.RUNTIME_ERROR,
        message=f"IndexError: {HOSTILE}",
        evaluations=[],
        isolation=Isolation(level="none", walls=[Wall(name="w", stands=True, detail="")]),
        environment_key="k",
    )
    evaluate._show(None, verdict, None)
    assert f"IndexError: {HOSTILE}" in shown(capsys)


def test_the_checks_of_a_problem_are_shown(capsys):
    check = AdmissionCheck(name=HOSTILE, refused=False, detail=HOSTILE)
    report = AdmissionReport(problem=HOSTILE, admitted=False, checks=[check])
    problems._show([report], [HOSTILE], "cpu")
    assert shown(capsys).count(HOSTILE) == 4


def test_samples_and_what_they_left_are_shown(capsys):
    row = Row(
        name=f"honest/{HOSTILE}",
        kind="honest",
        expected=["PASSED"],
        got="RUNTIME_ERROR",
        as_expected=False,
        message=HOSTILE,
        left=[HOSTILE],
    )
    selftest._printer(as_json=False)(row)
    assert shown(capsys).count(HOSTILE) == 3
    selftest._show([row], count([row], 1.0))
    assert shown(capsys).count(HOSTILE) == 2


def test_insights_and_their_authors_are_shown(call, archive):
    agent = archive.runs.ensure_agent(HOSTILE).id
    archive.board.post(
        "rmsnorm", InsightKind.HYPOTHESIS, "tiling", HOSTILE, agent=agent, device_name="x"
    )
    assert call("board", "rmsnorm").out.count(HOSTILE) == 2


def test_leaders_are_shown(capsys):
    promotion = SimpleNamespace(
        solution_id=HOSTILE,
        strategy=HOSTILE,
        device_name=HOSTILE,
        speedup=None,
        speedup_over_reference=None,
    )
    board._show(None, "rmsnorm", [promotion], source=False, history=False)
    assert shown(capsys).count(HOSTILE) == 2
    board._show(None, HOSTILE, [], source=False, history=False)
    assert HOSTILE in shown(capsys)


def test_the_overview_of_leaders_is_shown(capsys, monkeypatch):
    rows = [SimpleNamespace(name=HOSTILE)]
    lead = {
        "solution_id": "1" * 32,
        "speedup_over_reference": None,
        "strategy": HOSTILE,
        "device_name": HOSTILE,
    }
    archive = SimpleNamespace(
        catalogue=SimpleNamespace(problems=lambda: rows),
        leaders=SimpleNamespace(history=lambda *_: [lead]),
    )
    monkeypatch.setattr(board, "_brief", lambda promotions: promotions[0])
    board._overview(archive, as_json=False)
    assert shown(capsys).count(HOSTILE) == 3


def test_what_a_terminal_would_obey_is_left_out():
    assert output.harmless("a\tb\n\x1b[2J\x07é") == "a\tb\n[2Jé"
