"""Pagehand introduces itself in a channel that it was invited to: once, as long as the database keeps that. If it could
not, because Slack refused or nobody may use Pagehand there, it tries again at the next invitation. Likewise, each
workflow that mentions it in a channel is told once who can ask.

Every notice belongs to a thread, under whose id it is looked for and deleted. The thread of an introduction stands for
the channel: it has no requester, and never gets a card or a job.
"""

from bot.domain.threads.thread import Thread
from bot.notices.answers import Introduction
from bot.notices.notice import NewNotice
from bot.service.start import request_id
from bot.store.store import RecordingTransaction


async def record_introduction(tx: RecordingTransaction, team_id: str, channel_id: str, workflow_id: str) -> None:
    """Records that Pagehand owes a channel its introduction, or a workflow there its answer, unless given before."""
    known = (await tx.channel_ids.all_of(channel_id))[0]
    channel = Thread(
        id=request_id(f"introduction/{known}/{workflow_id}" if workflow_id else f"introduction/{known}"),
        team_id=team_id,
        channel_id=known,
        requester_id="",
        prompt="",
        project="",
        created_at=tx.now,
    )
    if await tx.threads.add(channel):
        await tx.notices.add(channel.id, NewNotice(Introduction.KEY, Introduction(to_workflow=bool(workflow_id))))
    else:
        await tx.notices.try_again(channel.id, Introduction.KEY)
