"""A job's HOME, packed for another machine: an agent made it, so nothing in it is trusted."""

import io
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from bot.jobserver.errors import JobServerError
from bot.jobserver.pipeline import home_archive
from bot.jobserver.pipeline.home_archive import pack, unpack

pytestmark = pytest.mark.promise("sandbox")


def listed(folder: Path) -> dict[str, str]:
    """Returns what is in a folder: the texts of files, and where links lead."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def make_home(folder: Path) -> Path:
    """Returns the home of a hostile agent, with a session in it."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "theirs").write_text("secret")
    home = folder / "home"
    (home / ".agent" / "empty").mkdir(parents=True)
    (home / ".agent" / "session").write_text("remembered")
    (home / ".agent" / "login").write_text("of AGENT_HOME")
    (home / "latest").symlink_to(".agent/session")
    (home / "dangling").symlink_to("nowhere")
    (home / "out").symlink_to("../outside/theirs")
    (home / "folder").symlink_to(outside)
    (home / "absolute").symlink_to(home / ".agent" / "session")
    os.link(home / ".agent" / "session", home / "linked")
    os.mkfifo(home / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(home / "socket"))
    deep = home
    for _ in range(100):
        deep = deep / "d"
        deep.mkdir()
    return home


def test_files_and_links_arrive_and_nothing_else(tmp_path: Path) -> None:
    home, arrived = make_home(tmp_path), tmp_path / "arrived"
    pack(home, tmp_path / "packed", [PurePosixPath(".agent/login")])
    arrived.mkdir()
    unpack(tmp_path / "packed", arrived)
    assert listed(arrived) == {
        ".agent/session": "remembered", "linked": "remembered", "latest": "-> .agent/session", "dangling": "-> nowhere",
    }  # fmt: skip
    assert (arrived / ".agent" / "empty").is_dir()
    assert {path.stat().st_mode & 0o077 for path in arrived.rglob("*") if path.is_file()} <= {0, 0o044}


@pytest.mark.parametrize("sizes", [(10_000,), (1,) * 10])
def test_a_home_that_is_too_large_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    """Neither by its bytes nor by the number of its files."""
    monkeypatch.setattr(home_archive, "LARGEST", 10_000)
    for number, size in enumerate(sizes):
        (tmp_path / "home" / str(number)).parent.mkdir(exist_ok=True)
        (tmp_path / "home" / str(number)).write_bytes(bytes(size))
    with pytest.raises(JobServerError, match=r"larger than 0\.01 MB"):
        pack(tmp_path / "home", tmp_path / "packed")


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    made.linkname = target
    return made


@pytest.mark.parametrize(
    "members",
    [
        [member("../theirs")],
        [member("a/../../theirs")],
        [member("link", tarfile.SYMTYPE, "../theirs")],
        [member("link", tarfile.SYMTYPE, "/etc/passwd")],
        [member("link", tarfile.LNKTYPE, "../theirs")],
        [member("link", tarfile.LNKTYPE, "theirs")],
        [member("pipe", tarfile.FIFOTYPE)],
        [member("device", tarfile.CHRTYPE)],
    ],
)
def test_a_hostile_archive_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "home").mkdir()
    with tarfile.open(tmp_path / "packed", "w:gz") as archive:
        for each in members:
            archive.addfile(each, io.BytesIO())
    with pytest.raises(JobServerError, match="cannot be unpacked"):
        unpack(tmp_path / "packed", tmp_path / "home")
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("last", ["link/written", "link"])
def test_a_home_is_not_written_through_a_link(tmp_path: Path, last: str) -> None:
    """By its text this link stays in the home, and yet it leads out."""
    (tmp_path / "home").mkdir()
    steps = [member("here", tarfile.SYMTYPE, "."), member("link", tarfile.SYMTYPE, "here/.."), member(last)]
    with tarfile.open(tmp_path / "packed", "w:gz") as archive:
        for each in steps:
            archive.addfile(each, io.BytesIO())
    with pytest.raises(JobServerError, match="elsewhere"):
        unpack(tmp_path / "packed", tmp_path / "home")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "packed"]


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: data[:200], lambda data: b"x" * 100])
def test_what_is_no_archive_is_refused(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_bytes(os.urandom(1000))
    pack(tmp_path / "home", tmp_path / "packed")
    (tmp_path / "packed").write_bytes(spoil((tmp_path / "packed").read_bytes()))
    (tmp_path / "new").mkdir()
    with pytest.raises(JobServerError):
        unpack(tmp_path / "packed", tmp_path / "new")
