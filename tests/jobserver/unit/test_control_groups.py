"""Whether control groups can be used, decided by folders that look like the kernel's, in our own process."""

import os
from pathlib import Path

import pytest

from bot.jobserver.sandbox.control_groups import (
    ControlGroups,
    NoControlGroups,
    OwnGroup,
    open_control_groups,
    own_group,
)

SYSTEMD = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
OF_BOTH_VERSIONS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n35 31 0:3 / /sys/fs/cgroup/memory rw - cgroup x rw\n"
)


@pytest.mark.parametrize(
    ("groups", "mounts", "folder", "top"),
    [
        ("0::/system.slice/x.service\n", SYSTEMD, "/sys/fs/cgroup/system.slice/x.service", "/sys/fs/cgroup"),
        ("4:memory:/a\n0::/b\n", SYSTEMD, "/sys/fs/cgroup/b", "/sys/fs/cgroup"),
        ("0::/\n", SYSTEMD, "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ("0::/a/b\n", "35 24 0:30 /a /cg ro - cgroup2 cgroup2 rw\n", "/cg/b", "/cg"),
        ("0::/b\n", "35 24 0:30 / /my\\040groups rw - cgroup2 cgroup2 rw\n", "/my groups/b", "/my groups"),
    ],
)
def test_the_servers_control_group_is_found_where_it_is_mounted(
    groups: str, mounts: str, folder: str, top: str
) -> None:
    assert own_group(groups, mounts) == OwnGroup(Path(folder), Path(top))


@pytest.mark.parametrize(
    ("groups", "mounts"),
    [
        ("4:memory:/a\n", SYSTEMD),
        ("0::/a\n", OF_BOTH_VERSIONS),
        ("0::/../../other\n", SYSTEMD),
        ("0::/b\n", "35 24 0:30 /a /cg ro - cgroup2 cgroup2 rw\n"),
        ("", ""),
    ],
)
def test_an_invisible_control_group_counts_as_none(groups: str, mounts: str) -> None:
    assert own_group(groups, mounts) is None


class Machine:
    """Folders in place of the kernel's; writing to their files has no effect."""

    def __init__(self, root: Path, path: str) -> None:
        self.top = root / "cgroup"
        self.own = self.top / path
        self.process = root / "self"
        self.marked: set[Path] = set()
        for folder in (self.own, self.process):
            folder.mkdir(parents=True)
        (self.process / "cgroup").write_text(f"0::/{path}\n")
        (self.process / "mountinfo").write_text(f"35 24 0:30 / {self.top} rw - cgroup2 cgroup2 rw\n")
        for folder in {self.own, self.own.parent, self.top}:
            (folder / "cgroup.controllers").write_text("cpu memory pids\n")
            (folder / "cgroup.type").write_text("domain\n")

    def open(self) -> ControlGroups | NoControlGroups:
        return open_control_groups(self.process, self.marked.__contains__)

    def written(self) -> dict[str, str]:
        names = ("cgroup.procs", "cgroup.subtree_control")
        files = (path for path in self.top.rglob("*") if path.name in names)
        return {str(path.relative_to(self.top)): path.read_text() for path in files}


SERVICE = "system.slice/x.service"
DIVIDED = "+memory +pids"


def test_a_delegated_group_is_divided_after_the_server_moved(tmp_path: Path) -> None:
    machine = Machine(tmp_path, SERVICE)
    machine.marked = {machine.own}
    (machine.own / "run-77").mkdir()
    assert machine.open() == ControlGroups(machine.own)
    expected = {f"{SERVICE}/server/cgroup.procs": str(os.getpid()), f"{SERVICE}/cgroup.subtree_control": DIVIDED}
    assert machine.written() == expected
    assert not (machine.own / "run-77").exists(), "a killed server's"


def test_a_service_started_in_a_subgroup_stays_there(tmp_path: Path) -> None:
    """With systemd's DelegateSubgroup."""
    machine = Machine(tmp_path, f"{SERVICE}/main")
    machine.marked = {machine.own.parent}
    assert machine.open() == ControlGroups(machine.own.parent)
    assert machine.written() == {f"{SERVICE}/cgroup.subtree_control": DIVIDED}


def test_a_container_owns_its_topmost_group(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    assert machine.open() == ControlGroups(machine.top)
    assert machine.written() == {"server/cgroup.procs": str(os.getpid()), "cgroup.subtree_control": DIVIDED}


def test_a_second_start_in_a_container_finds_its_group(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "server")
    assert machine.open() == ControlGroups(machine.top)
    assert machine.written() == {"cgroup.subtree_control": DIVIDED}


@pytest.mark.parametrize("path", [SERVICE, "user.slice/x.scope", "other"])
def test_an_undelegated_group_is_left_alone_even_if_writable(tmp_path: Path, path: str) -> None:
    machine = Machine(tmp_path, path)
    found = machine.open()
    assert isinstance(found, NoControlGroups)
    assert "Delegate=yes" in str(found)
    assert machine.written() == {}


def test_the_machines_topmost_group_is_not_used(tmp_path: Path) -> None:
    """Unlike a container's, it has no type."""
    machine = Machine(tmp_path, "")
    (machine.top / "cgroup.type").unlink()
    assert isinstance(machine.open(), NoControlGroups)
    assert machine.written() == {}


def test_missing_controllers_are_reported(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    (machine.top / "cgroup.controllers").write_text("cpu pids\n")
    assert "controllers memory and pids are not delegated" in str(machine.open())
    assert machine.written() == {}


def test_a_group_with_other_processes_is_unchanged(tmp_path: Path) -> None:
    """The kernel then refuses to divide it."""
    machine = Machine(tmp_path, "")
    (machine.top / "cgroup.subtree_control").mkdir()
    assert "it is checked periodically: " in str(machine.open())
    assert (machine.top / "cgroup.procs").read_text() == str(os.getpid()), "it moved back"


def test_a_machine_without_control_groups_says_so(tmp_path: Path) -> None:
    assert "control groups cannot be used" in str(open_control_groups(tmp_path))
