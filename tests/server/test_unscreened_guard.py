"""A guard without its static screen is for the selftest: a server takes none."""

import anyio
import pytest
from typer.testing import CliRunner

from kernelarc.cli.app import app
from kernelarc.guard import problems
from kernelarc.guard.errors import NotPermitted
from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.memory.archive import open_archive
from kernelarc.server.identity import agent_of_pipe
from kernelarc.server.services import run_services
from kernelarc.server.settings import ServerSettings
from kernelarc.strategies import catalogue


def test_the_server_refuses_it_before_anything_is_judged(tmp_path):
    archive = open_archive(tmp_path / "kernelarc.db")

    async def serve():
        settings = ServerSettings(home=tmp_path, database=tmp_path / "kernelarc.db")
        async with (
            open_guard(GuardSettings(home=tmp_path, screen=False)) as guard,
            run_services(
                settings,
                archive=archive,
                guard=guard,
                problems=problems,
                catalogue=catalogue.load(),
                local=agent_of_pipe(archive, None),
            ),
        ):
            pytest.fail("it serves")

    try:
        with pytest.RaisesGroup(NotPermitted, flatten_subgroups=True, allow_unwrapped=True):
            anyio.run(serve)
    finally:
        archive.close()


@pytest.mark.parametrize("command", [["stdio"], ["run", "rmsnorm"], ["eval", "rmsnorm", "x.cpp"]])
def test_no_command_that_stores_or_shows_verdicts_can_switch_it_off(command):
    answer = CliRunner().invoke(app, [*command, "--without-screen"])
    assert answer.exit_code == 2
    assert "No such option" in answer.output
