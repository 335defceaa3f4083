"""``kernelarc install``: other programs' files are at stake."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from kernelarc.cli.install import CLIENTS

JSON_CLIENTS = [name for name in CLIENTS if name != "codex"]
OTHER_JSON = """{
  "theme": "dunkel – ü",
  "SECTION": {"other": {"command": "x", "args": ["ü"]}},
  "list": [1, 2.50, null]
}"""
OTHER_TOML = """# mine
model = "o3"   # keep

[mcp_servers.other]
command = "x"

[last]
a = [1,  2]
"""


@pytest.fixture(autouse=True)
def client_home(tmp_path, monkeypatch):
    """No client's real file is ever touched."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("KERNELARC_HOME")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def file(tmp_path):
    return tmp_path / "files" / "client.conf"


def _content(client):
    return OTHER_TOML if client == "codex" else OTHER_JSON.replace("SECTION", _section(client))


def _section(client):
    return CLIENTS[client].section


def _parsed(client, text):
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def _existing(file, text):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")


@pytest.mark.parametrize("client", CLIENTS)
def test_the_configuration_is_printed_and_nothing_is_written(call, client, client_home):
    answer = call("install", client)
    assert answer.code == 0
    entry = _parsed(client, answer.out)[_section(client)]["kernelarc"]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-m", "kernelarc.cli", "stdio"]
    assert str(CLIENTS[client].path()) in answer.err.replace("\n", "")
    document = call("install", client, "--json").document
    assert document["config"] == _parsed(client, answer.out)
    assert document["written"] is False
    assert list(client_home.iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_file_is_made_where_the_client_looks(call, client, client_home):
    answer = call("install", client, "--write", "--json")
    assert answer.code == 0
    path = Path(answer.document["file"])
    assert path.is_relative_to(client_home)
    assert answer.document["backup"] is None
    assert _parsed(client, path.read_text("utf-8")) == answer.document["config"]
    assert [p.name for p in path.parent.iterdir() if p.is_file()] == [path.name]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_existing_file_keeps_everything_else_and_gets_a_backup(call, client, file):
    before = _content(client)
    _existing(file, before)
    answer = call("install", client, "--write", "--file", file, "--json")
    assert answer.code == 0
    after = _parsed(client, file.read_text("utf-8"))
    assert after[_section(client)].pop("kernelarc")["command"] == sys.executable
    assert after == _parsed(client, before)
    backup = Path(answer.document["backup"])
    assert backup.read_text("utf-8") == before
    assert {p.name for p in file.parent.iterdir()} == {file.name, backup.name}


def test_comments_and_layout_of_toml_stay(call, file):
    _existing(file, OTHER_TOML)
    call("install", "codex", "--write", "--file", file)
    text = file.read_text("utf-8")
    for line in OTHER_TOML.splitlines():
        assert line in text.splitlines()


@pytest.mark.parametrize(
    "content",
    ["", "[mcp_servers]\n", "mcp_servers = {}\n", "[a]\nb = 1", "[mcp_servers.kernelarc]\nx = 1\n"],
)
def test_any_form_of_the_toml_section_is_understood(call, file, content):
    _existing(file, content)
    assert call("install", "codex", "--write", "--file", file, "--home", "/h").code == 0
    entry = tomllib.loads(file.read_text("utf-8"))["mcp_servers"]["kernelarc"]
    assert entry["command"] == sys.executable
    assert entry["env"] == {"KERNELARC_HOME": "/h"}
    assert "x" not in entry


@pytest.mark.parametrize("client", CLIENTS)
def test_twice_is_the_same_as_once_apart_from_the_backup(call, client, file):
    _existing(file, _content(client))
    first = call("install", client, "--write", "--file", file, "--json").document["backup"]
    once = file.read_bytes()
    second = call("install", client, "--write", "--file", file, "--json").document["backup"]
    assert file.read_bytes() == once
    assert Path(second).read_bytes() == once
    assert Path(first).read_text("utf-8") == _content(client)


@pytest.mark.parametrize("client", JSON_CLIENTS)
@pytest.mark.parametrize(
    "content",
    ['{"a": 1', "not json", '{\n  // why\n  "a": 1\n}', '{"a": 1,}', "[]", "3", '{"SECTION": []}',
     '{"SECTION": null}', '{"SECTION": "x"}'],
)  # fmt: skip
def test_json_that_the_client_would_not_read_is_refused_and_untouched(call, client, file, content):
    _refused(call, client, file, content.replace("SECTION", _section(client)))


@pytest.mark.parametrize(
    "content",
    ["a = ", "[a", "mcp_servers = 3", 'mcp_servers = "x"', "[[mcp_servers]]\na = 1\n", "a=1\na=2"],
)
def test_toml_that_the_client_would_not_read_is_refused_and_untouched(call, file, content):
    _refused(call, "codex", file, content)


def _refused(call, client, file, content):
    _existing(file, content)
    answer = call("install", client, "--write", "--file", file)
    assert answer.code == 2
    answer.sentence(str(file), "nothing was written", "without --write")
    document = call("install", client, "--write", "--file", file, "--json")
    assert document.code == 2
    document.error(str(file), "nothing was written")
    assert file.read_text("utf-8") == content
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_file_that_cannot_be_read_is_refused_and_untouched(call, client, file):
    _existing(file, "")
    file.write_bytes(b"\xff\xfe{}")
    answer = call("install", client, "--write", "--file", file)
    assert answer.code == 2
    answer.sentence(str(file), "cannot be read", "nothing was written", "--file")
    assert file.read_bytes() == b"\xff\xfe{}"
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_is_refused(call, tmp_path):
    answer = call("install", "cursor", "--write", "--file", tmp_path)
    assert answer.code == 2
    answer.sentence("cannot be read", "--file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("mode", [0o000, 0o200])
def test_a_file_without_the_right_to_read_is_refused(call, file, mode):
    _existing(file, "{}")
    file.chmod(mode)
    answer = call("install", "cursor", "--write", "--file", file)
    assert answer.code == 2
    answer.sentence("Permission denied", "nothing was written")


def test_a_place_that_cannot_be_written_is_refused(call, file):
    _existing(file, "{}")
    answer = call("install", "cursor", "--write", "--file", file / "mcp.json")
    assert answer.code == 2
    answer.sentence(str(file), "--file")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_file_and_backup_keep_the_mode(call, file, mode):
    _existing(file, "{}")
    file.chmod(mode)
    backup = call("install", "cursor", "--write", "--file", file, "--json").document["backup"]
    assert file.stat().st_mode & 0o777 == mode
    assert Path(backup).stat().st_mode & 0o777 == mode


def test_a_link_is_followed_and_stays_a_link(call, file, tmp_path):
    _existing(file, '{"a": 1}')
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert call("install", "cursor", "--write", "--file", link).code == 0
    assert link.is_symlink()
    assert json.loads(file.read_text("utf-8")).keys() == {"a", "mcpServers"}


def test_places_that_are_named_are_passed_on(call, tmp_path):
    words = ("--db", tmp_path / "a.db", "--home", tmp_path / "h")
    entry = call("install", "cursor", "--json", *words).document["config"]["mcpServers"]
    wanted = {"KERNELARC_DB": str(tmp_path / "a.db"), "KERNELARC_HOME": str(tmp_path / "h")}
    assert entry["kernelarc"]["env"] == wanted


def test_an_unknown_client_is_refused_with_the_known_ones(call):
    answer = call("install", "emacs")
    assert answer.code == 2
    answer.sentence("'emacs'", *CLIENTS)
    call("install", "emacs", "--json").error("'emacs'", "codex")
