"""Names of attached files."""

from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.pipeline.job_folders import safe_names

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
