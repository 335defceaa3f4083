"""The suite against a real judge: right and wrong expectations, with and without the screen."""

import anyio
import pytest

from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.guard.selftest import sample
from kernelarc.guard.selftest.suite import Suite
from kernelarc.guard.selftest.tally import Row, count

pytest.importorskip("torch")
HONEST = "honest/rmsnorm-cpp"


def judged(*arguments, **options):
    return {row.name: row for row in judged_rows(*arguments, **options)}


def judged_rows(home, folder, *names, screen=True, progress=None):
    async def judge():
        settings = GuardSettings(
            home=home, isolation="none", call_timeout_s=6, compile_timeout_s=20, screen=screen
        )
        samples = [sample.load(name, folder) for name in names]
        async with open_guard(settings) as guard:
            suite = Suite(guard, sample.load(HONEST, folder))
            return [row async for row in suite.run(samples, progress)]

    return anyio.run(judge)


def test_rows_say_what_was_expected_and_what_came(tmp_path, folder, planted):
    right = planted("adversarial/does-nothing", "adversarial/right")
    wrong = planted("adversarial/does-nothing", "adversarial/wrong", expected='["PASSED"]')
    spared = planted("adversarial/does-nothing", "adversarial/spared", device='"cuda"')
    faulty = planted("adversarial/does-nothing", "adversarial/flag", cflags='["-fplugin=x.so"]')
    rejected = planted(HONEST, "honest/rejected")
    (folder / rejected / "main.cpp").write_text("this is no C++")
    names = (HONEST, right, wrong, spared, faulty, rejected)
    rows = judged(tmp_path / "home", folder, *names)
    assert list(rows) == list(names)
    assert not [sentence for row in rows.values() for sentence in row.left]
    assert {name: (row.got, row.as_expected) for name, row in rows.items()} == {
        HONEST: ("PASSED", True),
        right: ("STALE_OUTPUT", True),
        wrong: ("STALE_OUTPUT", False),
        spared: (None, False),
        faulty: ("MalformedSolution", False),
        rejected: ("COMPILE_ERROR", False),
    }
    assert rows[spared].skipped == "needs a cuda device"
    tally = count(rows.values(), 1.0)
    assert (tally.samples, tally.as_expected, tally.skipped) == (6, 2, 1)
    assert (tally.false_accepts, tally.false_rejects, tally.ok) == (0, 1, False)


def test_with_the_screen_off_the_walls_hold_alone(tmp_path, folder, planted):
    """Python, which the runner screens, and C++, which the compiling process does."""
    names = [
        planted("adversarial/exit-at-import", "adversarial/exit-at-import"),
        planted("adversarial/embed-host-file", "adversarial/embed-host-file"),
    ]
    assert all(sample.load(name, folder).expected(screen=True) == ["POLICY"] for name in names)
    rows = judged(tmp_path / "home", folder, *names, screen=False)
    assert [rows[name].got for name in names] == ["CRASH", "COMPILE_ERROR"]
    assert all(row.as_expected for row in rows.values())


def test_what_a_sample_leaves_fails_its_row_and_no_other(tmp_path, folder, planted):
    """A file that appears while a sample is judged, as if its candidate had written it."""
    home = tmp_path / "home"
    planted(HONEST, "honest/next")

    def plant(*_progress):
        (home / "left").touch()

    rows = judged(home, folder, HONEST, "honest/next", progress=plant)
    assert rows[HONEST].got == "PASSED"
    assert rows[HONEST].left == [f"file {home / 'left'} is left"]
    assert not rows[HONEST].as_expected
    assert rows["honest/next"].as_expected


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ([("another", 0.5)], "gets another verdict since one of the last 1 samples"),
        (
            [("first", 2.5), ("first", 2.25), ("first", 2.75)],
            "takes 2.25 s to judge since one of the last 1 samples, and took at most 1.00 s before",
        ),
        ([("first", 9.0), ("first", 9.0), ("first", 1.9)], None),
    ],
)
def test_another_verdict_or_time_of_the_probe_is_a_row_of_its_own(
    tmp_path, folder, monkeypatch, later, left
):
    judgements = iter([("first", 9.0), ("first", 0.5), ("first", 1.0), ("first", 0.5), *later])

    async def judge(_suite):
        return next(judgements)

    monkeypatch.setattr(Suite, "_judge_probe", judge)
    rows = judged_rows(tmp_path / "home", folder, HONEST)
    assert [row.as_expected for row in rows] == [True, False][: 1 + (left is not None)]
    assert [row.left for row in rows[1:]] == ([[f"{HONEST} {left}"]] if left else [])


def row(kind, got, expected, **more):
    as_expected = got in expected and not more.get("left")
    return Row(name=f"{kind}/x", kind=kind, expected=expected, got=got, as_expected=as_expected,
               **more)  # fmt: skip


def test_the_tally_tells_false_accepts_from_false_rejects():
    rows = [
        row("adversarial", "PASSED", ["POLICY"]),
        row("adversarial", "PROMOTED", ["TIE"]),
        row("adversarial", "CRASH", ["POLICY"]),
        row("honest", "TIE", ["BACKUP"]),
        row("honest", "CRASH", ["PASSED"]),
        row("honest", "PASSED", ["PASSED"], left=["file x is left"]),
        row("honest", "PASSED", ["PASSED"]),
        row("honest", None, ["PASSED"], skipped="needs a cuda device"),
    ]
    tally = count(rows, 1.23)
    assert tally.false_accepts == 2
    assert tally.false_rejects == 1
    assert tally.as_expected == 1
    assert tally.left_something == 1
    assert tally.skipped_for == {"needs a cuda device": 1}
    assert not tally.ok
    assert count(rows[-2:], 1).ok
    assert not count(rows[-1:], 1).ok, "a run that judged nothing proves nothing"
