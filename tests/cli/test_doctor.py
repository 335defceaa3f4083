"""``kernelarc doctor``."""

import shutil

import pytest

from kernelarc._version import __version__


@pytest.mark.torch
def test_the_facts_are_one_document(call, home):
    answer = call("doctor", "--no-start", "--json")
    facts = answer.document
    assert facts["kernelarc"] == __version__
    assert facts["home"] == str(home)
    assert facts["database"] == str(home / "kernelarc.db")
    assert facts["programs"]["g++"] == shutil.which("g++")
    assert facts["isolation"]["level"] in ("full", "reduced", "none")
    assert facts["ready"] is (facts["problem"] is None)
    assert answer.code == (0 if facts["ready"] else 3)


def test_the_tables_name_every_wall(call):
    walls = call("doctor", "--no-start", "--json").document["isolation"]["walls"]
    text = call("doctor", "--no-start").out
    assert walls
    assert all(wall["name"] in text for wall in walls)


@pytest.mark.parametrize("more", [(), ("--no-start",)])
def test_an_unknown_device_is_refused(call, more):
    answer = call("doctor", "--device", "gpu", *more)
    assert answer.code == 2
    answer.sentence("'gpu'", "available: cpu")
    call("doctor", "--device", "gpu", "--json", *more).error("'gpu'")
