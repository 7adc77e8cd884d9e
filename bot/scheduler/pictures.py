"""Brings the pictures of a job's pages from the job API to Slack, before the post that shows them."""

import asyncio
import logging
from dataclasses import replace
from pathlib import PurePosixPath

from bot import errors
from bot.domain.threads.thread import Thread
from bot.jobapi.models import LARGEST_PICTURE, PICTURE_TYPES
from bot.notices.pictures import PagePicture, PicturesShown
from bot.ports.job_api import JobApi
from bot.ports.slack import Chat
from bot.runtime.pictures import picture_type

logger = logging.getLogger(__name__)
PATIENCE = 12.0
"""Seconds for a picture: other posts of its thread wait for it."""
_LONGEST_NAME = 100


async def with_uploaded(
    job_api: JobApi, chat: Chat, thread: Thread, message: PicturesShown, patience: float
) -> PicturesShown:
    """Returns what can be posted: a picture that does not arrive in Slack within so many seconds is only named."""
    uploads = (_uploaded(job_api, chat, thread, each, patience) for each in message.pictures)
    return replace(message, pictures=tuple(await asyncio.gather(*uploads)))


def only_named(message: PicturesShown) -> PicturesShown:
    """Returns what can be posted without uploading anything more."""
    named = (each if each.file else replace(each, shown=False) for each in message.pictures)
    return replace(message, pictures=tuple(named))


async def _uploaded(job_api: JobApi, chat: Chat, thread: Thread, picture: PagePicture, patience: float) -> PagePicture:
    if not picture.shown or picture.file or thread.state.job is None:
        return picture
    name = PurePosixPath(picture.path).name[-_LONGEST_NAME:]
    try:
        async with asyncio.timeout(patience):
            content = await job_api.picture(thread.project, thread.state.job.id, picture.id)
            if len(content) <= LARGEST_PICTURE and picture_type(content) in PICTURE_TYPES:
                return replace(picture, file=await chat.upload(name, content, words=picture.alt or name))
        logger.info("%s is only named: it is no picture, or too large", picture.id)
    except (errors.JobApiError, errors.ChatError, TimeoutError) as error:
        logger.info("%s is only named: %s", picture.id, str(error) or "it took too long")
    return replace(picture, shown=False)
