"""Every wall by what it refuses, with its twin: the same attempt without that wall succeeds."""

from __future__ import annotations

import pytest

from kernelarc.guard.sandbox import WallName, climbs, landlock
from kernelarc.guard.sandbox.policy import ALL_WALLS

ALONE = [(wall, climb.__name__) for wall, some in climbs.ALONE.items() for climb in some]
SURVIVOR = climbs.leave_survivor.__name__


@pytest.mark.parametrize("climb", [c.__name__ for c in climbs.EVERY if c.__name__ != SURVIVOR])
def test_without_walls_every_attempt_succeeds(best_host, climb):
    answer = best_host.attempt(climb, walls=())
    if climb in ("dump_core", "trace") and answer.refused:
        pytest.skip(f"this host forbids it to everybody: {answer.refused}")
    assert isinstance(answer.result, str)
    assert answer.status == 0


@pytest.mark.parametrize(("wall", "climb"), ALONE)
def test_each_wall_stops_its_attempts_alone(root_host, wall, climb):
    answer = root_host.attempt(climb, walls={wall})
    assert answer.refused is not None
    assert answer.status == 0, "the attempt is refused, not punished"


@pytest.mark.parametrize("climb", [climb.__name__ for climb in climbs.EVERY])
def test_root_can_raise_all_walls_and_nothing_climbs_them(root_host, climb):
    assert root_host.raisable() == ALL_WALLS
    answer = root_host.attempt(climb)
    assert answer.refused is not None
    assert answer.all_ended


@pytest.mark.parametrize("climb", [climb.__name__ for climb in climbs.ESSENTIAL])
def test_nothing_essential_is_climbed_on_any_host(host, climb):
    answer = host.attempt(climb)
    assert answer.refused is not None
    assert answer.all_ended


@pytest.mark.parametrize(
    ("climb", "since"), [("connect_tcp", 4), ("connect_abstract", 6), ("signal_judge", 6)]
)
def test_landlock_alone_closes_the_ways_to_the_judge_that_its_version_knows(
    best_host, climb, since
):
    if landlock.abi() < since:
        pytest.skip(f"Landlock {landlock.abi()} does not know this")
    assert best_host.attempt(climb, walls={WallName.LANDLOCK}).refused == "EPERM" or (
        climb == "connect_tcp"
    )
    assert best_host.attempt(climb, walls={WallName.LANDLOCK}).refused in ("EPERM", "EACCES")


def test_another_user_cannot_be_signalled_or_read(root_host):
    for climb in ("signal_judge", "trace", "read_memory", "write_memory"):
        assert root_host.attempt(climb, walls={WallName.UID}).refused in ("EPERM", "EACCES")


def test_the_process_limit_counts_for_another_user_than_root(root_host):
    walls = {WallName.UID, WallName.LIMITS}
    assert root_host.attempt("many_processes", walls=walls).refused == "EAGAIN"


def test_a_rank_that_the_host_grants_is_not_the_candidates(generous_host):
    walls = {WallName.UID, WallName.PRIVILEGES}
    assert generous_host.attempt("take_rank", walls=walls).refused is None
    assert generous_host.attempt("take_rank", walls=walls | {WallName.LIMITS}).refused == "EPERM"
