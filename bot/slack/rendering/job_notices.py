"""What is said about a job: its start, its ends, its pull requests. Pure."""

from collections.abc import Sequence

from bot.domain.job_details import JobReport
from bot.domain.notices.posts import (
    AgentAskedToStop,
    JobFailed,
    JobFinished,
    JobStarted,
    JobStillStopping,
    JobStopped,
    PullRequestFound,
)
from bot.domain.threads import Thread
from bot.slack.rendering.blocks import OPEN_PULL_REQUEST, Message, link_button, paragraph
from bot.slack.rendering.job_report import reason_quoted, reply_here, with_report
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import addressing, link, person, safe_url

_AS_IT_WAS = "\nThe pull request is as it was:"


def started(thread: Thread, message: JobStarted) -> Message:
    """Where the agent is at work, and how to steer it."""
    told = ((message.repository, "in"), (message.ref, "on branch"), (message.model, "with"))
    place = [f"{word} {link(value, 300)}" for value, word in told if value]
    where = f" {', '.join(place)}" if place else ""
    begun, steer = f"The agent has started{where}.", f"{reply_here(thread)} to steer it"
    return paragraph(f"{begun} {steer}; what begins with `//` is not sent.")


def active_again() -> Message:
    """After a follow-up."""
    return paragraph("The agent is at work again.")


def finished(thread: Thread, message: JobFinished, told: Sequence[str]) -> Message:
    """With the pull request, and what the job tells of its end. `told` are the people whom it mentions."""
    words = f"{addressing(told)}{_how_it_finished(thread, message)}"
    if message.link:
        return with_report(thread, _with_link(words, message.link), message.report)
    return with_report(thread, paragraph(words), message.report)


def _how_it_finished(thread: Thread, message: JobFinished) -> str:
    finished, report = f"Finished{' again' if message.again else ''}", message.report or JobReport()
    if report.unchanged:
        return f"{finished}. Nothing was changed{_because(report)}{_AS_IT_WAS if message.link else ''}"
    if message.link:
        return _with_pull_request(finished, message, report)
    if report.reason:
        return f"{finished} without a pull request{_because(report)}"
    return (
        f"{finished} without a pull request. If one turns up in the next minutes, it is posted here. "
        f"{reply_here(thread)} to ask for more."
    )


def _with_pull_request(finished: str, message: JobFinished, report: JobReport) -> str:
    told = f"\n{reason_quoted(report)}\n" if report.reason else " "
    if message.new:
        return f"{finished}.{told}{_news(changed=message.changed)}"
    if report.unchanged is False:
        return f"{finished}.{told}The pull request was changed:"
    if not message.again:
        return f"{finished}.{told}The pull request:"
    return (
        f"{finished}, with the same link as before.{told}The job API does not tell whether the pull request has "
        "changed, or is still open:"
    )


def _because(report: JobReport) -> str:
    return f":\n{reason_quoted(report)}" if report.reason else "."


def stopped(thread: Thread, message: JobStopped, told: Sequence[str]) -> Message:
    """With the pull request, where there is one, and what the job tells of its end."""
    report, others = message.report or JobReport(), [each for each in told if each != message.person_id]
    gap = "\n" if report.reason else " "
    words = f"{addressing(others)}Stopped by {person(message.person_id)}{_because(report)}{gap}"
    if not message.link:
        end = paragraph(f"{words}There is no pull request. {reply_here(thread)} to go on.")
        return with_report(thread, end, message.report)
    found = _news(changed=message.changed) if message.new else "What was done before is in the pull request:"
    return with_report(thread, _with_link(f"{words}{found}", message.link), message.report)


def still_stopping(message: JobStillStopping) -> Message:
    """What that means for whoever waits for it."""
    return paragraph(
        f"The job API took the stop of {person(message.person_id)}, but the agent is still at work. When it ends, that "
        "is told here."
    )


def agent_asked_to_stop(message: AgentAskedToStop) -> Message:
    """What was done instead, and what can be hoped for."""
    return paragraph(
        f"{person(message.person_id)} The job API has no way to stop a job. The agent was told to stop and to change "
        "nothing more; whether it does is up to the agent."
    )


def pull_request_found(message: PullRequestFound, told: Sequence[str]) -> Message:
    """A link that came by itself."""
    return _with_link(f"{addressing(told)}{_news(changed=message.changed)}", message.link)


def failed(thread: Thread, message: JobFailed, message_context: MessageContext, told: Sequence[str]) -> Message:
    """Why, where that is told, and what to do about it."""
    report = message.report or JobReport()
    why = f":\n{reason_quoted(report)}\n" if report.reason else "; it gives no reason. "
    words = (
        f"{addressing(told)}The agent reports that the job failed{why}{reply_here(thread)} to have it try again, or "
        f"start afresh with {message_context.slash}."
    )
    return with_report(thread, paragraph(words), message.report)


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
