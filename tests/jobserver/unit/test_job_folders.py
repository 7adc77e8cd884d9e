"""A job's folders: the names of attached files, and what is deleted from a HOME after an instruction."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.pipeline.job_folders import ANY_PROGRAMS, drop_caches, safe_names

LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


@given(st.lists(st.text(max_size=200) | st.sampled_from(["a.png", "A.PNG", "a-2.png", "../a.png", ".."]), max_size=30))
def test_stored_names_are_plain_distinct_and_short(names: list[str]) -> None:
    """Whatever people call their files."""
    safe = safe_names(names)
    assert len({name.lower() for name in safe}) == len(names)
    for name in safe:
        assert set(name) <= LETTERS
        assert name[0] not in "-."
        assert len(name) <= 120
        assert name == PurePosixPath(name).name


def test_files_keep_their_names_when_more_arrive() -> None:
    """An agent's session remembers earlier paths."""
    names = ["a.png", "a.png", "b", "A.png"]
    assert safe_names(names) == ["a.png", "a-2.png", "b", "A-3.png"]
    assert safe_names(names[:2]) == safe_names(names)[:2]


def written(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_caches_are_deleted_and_their_neighbours_kept(tmp_path: Path) -> None:
    cached = [written(tmp_path / cache / "deep" / "file") for cache in (*ANY_PROGRAMS, ".agent/log")]
    kept = [written(tmp_path / name) for name in (".agent/session", ".npmrc", ".local/share/agent/session.db")]
    drop_caches(tmp_path, (".agent/log",))
    assert not any(path.exists() for path in cached)
    assert all(path.exists() for path in kept)


@pytest.mark.parametrize("link", [".cache", ".npm", ".npm/_cacache"])
def test_no_symlink_leads_the_sweep_elsewhere(tmp_path: Path, link: str) -> None:
    outside = [written(tmp_path / "outside" / name) for name in ("_cacache/theirs", "theirs")]
    at = tmp_path / "home" / link
    at.parent.mkdir(parents=True)
    at.symlink_to(tmp_path / "outside")
    drop_caches(tmp_path / "home")
    assert all(path.exists() for path in outside)


def test_a_file_or_closed_folder_in_place_of_a_cache_is_deleted(tmp_path: Path) -> None:
    written(tmp_path / ".cache")
    written(tmp_path / ".npm" / "_cacache" / "file").parent.chmod(0)
    drop_caches(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".npm"]
    assert not (tmp_path / ".npm" / "_cacache").exists()
