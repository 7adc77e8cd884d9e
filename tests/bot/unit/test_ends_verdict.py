"""The oracle of ends detects each fault, and finds none if all is right."""

from collections.abc import Sequence

import pytest
from support.fakes.ports import Posted
from support.oracles.ends_verdict import wrong_announcements

from bot.domain.projects import PostMode
from bot.domain.threads.thread import Thread
from bot.notices.job import JobFinished, JobStarted, PullRequestFound
from bot.notices.notice import NoticeContent

LINK = "https://git.example/pull/1"
FINISHED = JobFinished(LINK, new=True, person_id="UANA")
_THREAD = Thread("t1", "T1", "C1", "UANA", "Do it", "docs", 0.0, ts="1.0", card_ts="1.0")


def _found(*messages: NoticeContent, mode: PostMode = PostMode.ALL, ends: int = 1) -> Sequence[str]:
    posts = [Posted("C1", f"{at}.0", "1.0", f"t1/r{at}/post", message) for at, message in enumerate(messages)]
    return list(wrong_announcements(_THREAD, posts, mode, ends))


def test_a_correct_start_and_end_pass_the_verdict() -> None:
    """A line without a mention, and one post with one."""
    assert not _found(JobStarted("j1"), FINISHED)


@pytest.mark.parametrize(
    ("messages", "mode", "what"),
    [
        ((FINISHED, JobFinished(LINK, again=True)), PostMode.ALL, "1 ends were told in 2 posts"),
        ((FINISHED, PullRequestFound(LINK)), PostMode.ALL, "was told as new 2 times"),
        ((JobStarted("j1"), FINISHED), PostMode.ENDS, "where only ends are wanted"),
    ],
)
def test_wrong_announcements_fail_the_verdict(messages: Sequence[NoticeContent], mode: PostMode, what: str) -> None:
    """An end twice, a link twice, an unwanted start."""
    (found,) = _found(*messages, mode=mode)
    assert what in found
