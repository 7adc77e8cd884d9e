"""What is deleted from a HOME after an instruction, whatever a program has done to its folders."""

from pathlib import Path

import pytest

from bot.jobserver.agents.named import NAMED, Agent
from bot.jobserver.pipeline.job_folders import ANY_PROGRAMS, drop_caches


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


def test_a_missing_home_needs_no_sweep(tmp_path: Path) -> None:
    drop_caches(tmp_path / "home")


@pytest.mark.parametrize("agent", NAMED.values(), ids=NAMED)
def test_an_agents_caches_are_in_its_home(agent: Agent) -> None:
    paths = list(map(Path, agent.caches))
    assert not any(path.is_absolute() or ".." in path.parts or not path.parts for path in paths)
