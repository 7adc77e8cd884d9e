"""What is said about a job: its start, its ends, its pull requests. Pure."""

from bot.domain.notices.posts import JobFinished, JobStarted, PullRequestFound
from bot.domain.threads import Thread
from bot.slack.rendering.blocks import OPEN_PULL_REQUEST, Message, link_button, paragraph
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import link, person, safe_url


def started(message: JobStarted) -> Message:
    """Where the agent is at work, and how to steer it."""
    told = ((message.repository, "in"), (message.ref, "on branch"), (message.model, "with"))
    place = [f"{word} {link(value, 300)}" for value, word in told if value]
    where = f" {', '.join(place)}" if place else ""
    return paragraph(f"The agent has started{where}. Reply here to steer it; what begins with `//` is not sent.")


def active_again() -> Message:
    """After a follow-up."""
    return paragraph("The agent is at work again.")


def finished(thread: Thread, message: JobFinished) -> Message:
    """With the pull request, as far as the job API tells about it."""
    again = " again" if message.again else ""
    requester = person(thread.requester_id)
    if not message.link:
        return paragraph(
            f"{requester} Finished{again} without a pull request. If one turns up in the next minutes, it is posted "
            "here. Reply here to ask for more."
        )
    if message.new:
        return _with_link(f"{requester} Finished{again}. {_news(changed=message.changed)}", message.link)
    if not again:
        return _with_link(f"{requester} Finished. The pull request:", message.link)
    return _with_link(
        f"{requester} Finished again, with the same link as before. The job API does not tell whether the pull request "
        "has changed, or is still open:",
        message.link,
    )


def pull_request_found(thread: Thread, message: PullRequestFound) -> Message:
    """A link that came by itself."""
    return _with_link(f"{person(thread.requester_id)} {_news(changed=message.changed)}", message.link)


def failed(thread: Thread, message_context: MessageContext) -> Message:
    """What to do about it."""
    return paragraph(
        f"{person(thread.requester_id)} The agent reports that the job failed; it gives no reason. Reply here to have "
        f"it try again, or start afresh with {message_context.slash}."
    )


def archived(message_context: MessageContext) -> Message:
    """What it means for the thread."""
    return paragraph(
        f"This job is archived, so no more follow-ups are sent to it. Start a new one with {message_context.slash}."
    )


def disappeared(message_context: MessageContext) -> Message:
    """What it means for the thread."""
    return paragraph(
        "The job API no longer knows this job, so there will be no more news of it. "
        f"Start a new one with {message_context.slash}."
    )


def record_damaged(message_context: MessageContext) -> Message:
    """What it means for the thread, and for the job."""
    return paragraph(
        "Pagehand's own record of this job is damaged, so there will be no more news of it here, and replies cannot be "
        f"sent. What the agent does is not affected. Start a new job with {message_context.slash}."
    )


def _news(*, changed: bool) -> str:
    return "There is a new pull request:" if changed else "There is a pull request:"


def _with_link(words: str, found: str) -> Message:
    url = safe_url(found)
    buttons = (link_button("Open the pull request", OPEN_PULL_REQUEST, url),) if url else ()
    return paragraph(f"{words}\n{link(found)}", *buttons)
