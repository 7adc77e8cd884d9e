"""Names of attached files, and what the built-in editor says about them."""

from pathlib import Path, PurePosixPath

from hypothesis import given
from hypothesis import strategies as st
from support.builtin_editor import work

from bot.jobserver.executor.job_folders import safe_names

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


def test_the_built_in_editor_names_the_files_it_ignored(tmp_path: Path) -> None:
    (tmp_path / "start.md").write_text("# A colour\n")
    done = work('Replace "colour" with "color"', tmp_path, ["diagram.png", "notes.txt"])
    assert done["summary"].endswith("\nAttached, and left alone: diagram.png, notes.txt.")
    assert work("Be nice", tmp_path, ["diagram.png"])["reason"].endswith("\nAttached, and left alone: diagram.png.")
