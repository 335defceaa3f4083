"""The view of the file system: readable, hidden, links; by mounts, by Landlock, by both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.sandbox import WallName, filetree, landlock

ONE_WALL = [{WallName.MOUNT_NAMESPACE}, {WallName.LANDLOCK}, None]


@pytest.fixture
def tree(tmp_path):
    """A folder open to everybody, with something to hide in it."""
    for name in ("open.txt", "secret.txt", "package/module.txt", "package/inner/deep.txt"):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "root" / "link").symlink_to("package")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    return tmp_path / "root"


@pytest.mark.parametrize("walls", ONE_WALL)
def test_readable_files_are_read_and_listed(best_host, tree, walls):
    policy = {"readable": [str(tree)]}
    read = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/package/module.txt")
    assert read.result == "package/module.txt"
    names = best_host.attempt("names", walls=walls, policy=policy, path=str(tree))
    assert names.result == ["link", "open.txt", "package", "secret.txt"]


@pytest.mark.parametrize("walls", ONE_WALL)
@pytest.mark.parametrize("hidden", ["package", "package/inner", "link"])
def test_hidden_folders_are_unreadable_and_their_siblings_are_not(best_host, tree, walls, hidden):
    policy = {"readable": [str(tree)], "hidden": [f"{tree}/{hidden}"]}
    for path in ("package/inner/deep.txt", "link/inner/deep.txt"):
        answer = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/{path}")
        assert answer.refused in ("EACCES", "ENOENT")
    open_file = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/open.txt")
    assert open_file.result == "open.txt"


@pytest.mark.parametrize("walls", ONE_WALL)
def test_a_hidden_file_gives_nothing(best_host, tree, walls):
    policy = {"readable": [str(tree)], "hidden": [f"{tree}/secret.txt"]}
    answer = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/secret.txt")
    assert answer.refused == "EACCES" or answer.result == ""


@pytest.mark.parametrize("walls", ONE_WALL)
def test_a_readable_path_through_a_link_works_under_both_names(best_host, tree, walls):
    policy = {"readable": [f"{tree}/link/inner"]}
    for path in ("package/inner/deep.txt", "link/inner/deep.txt"):
        answer = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/{path}")
        assert answer.result == "package/inner/deep.txt"
    closed = best_host.attempt("read", walls=walls, policy=policy, path=f"{tree}/open.txt")
    assert closed.refused in ("EACCES", "ENOENT")


def test_readable_files_cannot_be_changed_by_their_owner(best_host, tree):
    """By mounts alone and as the owner: read-only is a property of the view."""
    walls = {WallName.MOUNT_NAMESPACE}
    policy = {"readable": [str(tree)]}
    answer = best_host.attempt("write", walls=walls, policy=policy, path=f"{tree}/open.txt")
    assert answer.refused in ("EROFS", "EACCES")


def test_the_plan_binds_outermost_folders_and_keeps_links_outside_them(tree):
    plan = filetree.plan(
        (tree / "package", tree / "package" / "inner", tree / "link", tree / "missing"), ()
    )
    assert plan.binds == (str(tree / "package"),)
    assert plan.links == ((str(tree / "link"), "package"),)
    assert plan.masks == ()


def test_the_plan_masks_what_is_hidden_once_and_only_if_it_is_visible(tree):
    plan = filetree.plan(
        (tree / "package",),
        (tree / "package" / "inner", tree / "package" / "inner" / "deep.txt", tree / "open.txt"),
    )
    assert plan.masks == (str(tree / "package" / "inner"),)


def test_a_loop_of_links_leads_nowhere(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert filetree.plan((tmp_path / "a",), ()).binds == ()


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: Path("/nowhere", *parts))


@given(readable=paths, hidden=st.lists(paths, max_size=3))
def test_landlock_never_grants_what_is_hidden(readable, hidden):
    granted = list(landlock.readable_rules([readable], hidden))
    for path, rights in granted:
        for secret in hidden:
            assert not path.is_relative_to(secret)
            if secret.is_relative_to(path):
                assert not rights & landlock.READ_FILE


@given(version=st.integers(1, 30))
def test_the_rights_of_a_version_grow_and_scratch_has_no_programs_or_devices(version):
    assert landlock.file_rights(version) & ~landlock.file_rights(version + 1) == 0
    assert landlock.writable(version) & (landlock.EXECUTE | landlock.IOCTL_DEV) == 0
    assert landlock.writable(version) & landlock.WRITE_FILE


def test_siblings_of_a_hidden_folder_are_granted_one_by_one(tree):
    granted = dict(landlock.readable_rules([tree], [tree / "package"]))
    assert granted[tree] == landlock.READ_DIR
    assert granted[tree / "open.txt"] == landlock.READ
    assert tree / "package" not in granted
    assert tree / "link" not in granted, "it leads into what is hidden"
    assert os.path.realpath(tree / "link") == str(tree / "package")


@pytest.mark.parametrize(("name", "text"), [("oom_score_adj", "0"), ("comm", "worker")])
def test_nothing_below_its_own_proc_can_be_written(best_host, name, text):
    assert best_host.attempt("write_own_proc", name=name, text=text).refused == "EACCES"
