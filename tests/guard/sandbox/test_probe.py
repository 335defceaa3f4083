from __future__ import annotations

import pytest

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import WallName, climbs, kernel, probe, standing
from kernelarc.guard.sandbox.policy import ALL_WALLS, NAMESPACES
from kernelarc.guard.sandbox.probe import _judge_wall, _level
from kernelarc.guard.schema.results import Isolation, Wall

REFUSED = {climb.__name__: (False, "refused") for climb in climbs.EVERY}


def of(host) -> Isolation:
    return Isolation.model_validate_json(host.probe())


@pytest.mark.root
def test_root_finds_every_wall_standing(root_host):
    isolation = of(root_host)
    assert isolation.level == "full"
    assert standing(isolation) == ALL_WALLS
    assert all(wall.detail for wall in isolation.walls)


def test_a_user_lacks_only_the_wall_of_another_user(user_host):
    isolation = of(user_host)
    assert isolation.level == "reduced"
    assert standing(isolation) == ALL_WALLS - {WallName.UID}


def test_without_user_namespaces_the_walls_of_one_process_still_stand(bare_host):
    isolation = of(bare_host)
    assert isolation.level == "reduced"
    assert standing(isolation) == ALL_WALLS - NAMESPACES - {WallName.UID}
    details = {wall.name: wall.detail for wall in isolation.walls}
    assert "cannot be raised" in details[WallName.PID_NAMESPACE]


def test_root_without_the_right_to_mount_uses_a_user_namespace(container_host):
    isolation = of(container_host)
    assert standing(isolation) >= ALL_WALLS - {WallName.MOUNT_NAMESPACE}


def test_the_public_probe_agrees_with_the_walls_that_can_be_raised(best_host):
    assert standing(probe()) == best_host.raisable()


def test_an_essential_climb_makes_the_level_none_even_if_every_wall_was_raised():
    walls = [Wall(name=name, stands=True, detail="") for name in WallName]
    assert _level(walls, REFUSED) == "full"
    assert _level(walls, REFUSED | {"read_secret": (True, "read it")}) == "none"


def test_a_missing_wall_makes_the_level_reduced():
    walls = [Wall(name=n, stands=n is not WallName.IPC_NAMESPACE, detail="") for n in WallName]
    assert _level(walls, REFUSED) == "reduced"


def test_a_wall_that_was_climbed_does_not_stand():
    alone = {climb.__name__: (False, "refused") for climb in climbs.ALONE[WallName.LIMITS]}
    assert _judge_wall(WallName.LIMITS, alone, REFUSED).stands
    over = {"large_file": (True, "made a large file")}
    alone_climbed = _judge_wall(WallName.LIMITS, alone | over, REFUSED)
    together_climbed = _judge_wall(WallName.LIMITS, alone, REFUSED | over)
    assert not alone_climbed.stands
    assert not together_climbed.stands
    assert "made a large file" in alone_climbed.detail


def test_another_platform_has_level_none_and_says_what_is_needed(monkeypatch):
    def machine() -> str:
        raise SandboxUnavailable("the sandbox needs 64-bit Linux")

    monkeypatch.setattr(kernel, "machine", machine)
    isolation = probe()
    assert isolation.level == "none"
    assert "Linux" in isolation.walls[0].detail
    assert standing(isolation) == frozenset()
