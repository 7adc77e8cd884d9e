"""Decides which pictures of a pull request come into a job's thread. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.jobs.job import COMPLETED, digest
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import LARGEST_PICTURE, PICTURE_TYPES, JobDetails, Picture, PullRequestState
from bot.notices.notice import NewNotice
from bot.notices.pictures import PagePicture, PicturesShown

MOST_SHOWN = 2
"""Pictures in one post; the others are named."""
_MOST_KNOWN = 200
"""Pictures of a thread that are not shown again."""


def note_pictures(state: ThreadState, details: JobDetails) -> tuple[ThreadState, list[NewNotice]]:
    """Announces the pictures of a finished job's pull request, each once; those of a muted job once it no longer is."""
    job, known = state.job, state.announcements.pictures
    new = {key: each for each in details.pictures if (key := digest(each.id)) not in known}
    pending = details.pull_request is not None and details.pull_request.state is PullRequestState.PENDING
    if not new or job is None or job.status != COMPLETED or not job.pr_link or pending or state.people.muted_by:
        return state, []
    told = PicturesShown(job.pr_link, _chosen(list(new.values())), len(new))
    state = replace(state, announcements=replace(state.announcements, pictures=(*known, *new)[-_MOST_KNOWN:]))
    return state, [NewNotice(PicturesShown.key(digest("".join(new))), told)]


def _chosen(pictures: Sequence[Picture]) -> tuple[PagePicture, ...]:
    shown = [each for each in pictures if each.mimetype in PICTURE_TYPES and 0 < (each.size or 0) <= LARGEST_PICTURE]
    return tuple(
        PagePicture(each.id, each.path, each.alt or "", shown=each in shown[:MOST_SHOWN], link=each.link or "")
        for each in pictures
    )
