"""Checks how a job's starts and ends are announced: an end in one post with at most one mention; a start without."""

from collections import Counter
from collections.abc import Iterator, Sequence

from support.fakes.ports import Posted

from bot.domain.projects import PostMode
from bot.domain.threads.thread import Thread
from bot.notices.job import JobActiveAgain, JobEnd, JobStarted, PullRequestFound
from bot.notices.notice import Notice
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages


def wrong_announcements(thread: Thread, posts: Sequence[Posted], mode: PostMode, ends: int) -> Iterator[str]:
    """Checks the posts about one job. `mode` is that of its channel; `ends` is how often the job ended."""
    of_ends = [post.key for post in posts if isinstance(post.message, JobEnd)]
    if len(of_ends) > ends:
        yield f"{ends} ends were told in {len(of_ends)} posts: {of_ends}"
    for link, times in Counter(_new_links(posts)).items():
        if times > 1:
            yield f"{link} was told as new {times} times in {thread.id}"
    for post in posts:
        begins, mentioned = isinstance(post.message, JobStarted | JobActiveAgain), _mentions(thread, post)
        if begins and mode is PostMode.ENDS:
            yield f"{post.key} tells of a beginning, where only ends are wanted"
        if mentioned > (0 if begins else 1):
            yield f"{post.key} mentions {mentioned} people"


def _new_links(posts: Sequence[Posted]) -> Iterator[str]:
    for post in posts:
        if isinstance(post.message, PullRequestFound) or (isinstance(post.message, JobEnd) and post.message.new):
            yield post.message.link


def _mentions(thread: Thread, post: Posted) -> int:
    """Returns how many people a start or end notice mentions, as Slack gets it."""
    if not isinstance(post.message, JobStarted | JobActiveAgain | PullRequestFound | JobEnd):
        return 0
    notice = Notice(0, post.key, thread.id, post.message, 0.0)
    return sum(str(made.text).count("<@") for made in messages(thread, notice, MessageContext()))
