"""The card: a thread's first message, which always shows the job's newest state."""

from bot.domain.models import ACTIVE, ARCHIVED, COMPLETED, FAILED, Job, Known, Thread, Trouble
from bot.slack.blocks import (
    MAX_TEXT,
    OPEN_PULL_REQUEST,
    SHOW_PROMPT,
    Block,
    Message,
    actions,
    button,
    context,
    link_button,
    section,
)
from bot.slack.text import ELLIPSIS, link, one_line, opening, person, pieces, quote, safe_url, shorten
from bot.slack.wording import Wording

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4
_MAX_FACT = 300

_UNSENT = {
    Trouble.OUT_OF_REACH: "Not sent yet: the job API can't be reached. It is sent as soon as that answers.",
    Trouble.NOT_ALLOWED: "Not sent yet: the job API does not let Pagehand in. Please ask {ask}.",
    Trouble.REFUSED: "Not started: the request was refused.",
    Trouble.UNSURE: "It is not known whether this was started; the thread tells more.",
    Trouble.GONE: "The job API does not know this job.",
    Trouble.CANNOT_POST: "Not started: Pagehand can't post here.",
}
_BEHIND = {
    Trouble.OUT_OF_REACH: "The job API can't be reached, so this may have changed since.",
    Trouble.NOT_ALLOWED: "The job API does not let Pagehand in, so this may have changed since. Please ask {ask}.",
    Trouble.REFUSED: "The last follow-up was refused; the thread tells more.",
    Trouble.UNSURE: "It is not known whether the last follow-up arrived; the thread tells more.",
    Trouble.GONE: "The job API no longer knows this job.",
    Trouble.CANNOT_POST: "Pagehand can't post in this channel.",
}


def card(thread: Thread, wording: Wording) -> Message:
    """The card of a thread as it is now."""
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    asker, state = f"{person(thread.asker_id)} asked:", state_line(thread.known, wording)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    blocks = [section(f"{asker}\n{prompt}"), section(state)]
    facts = _facts(thread.known.job)
    if facts:
        blocks.append(context(facts))
    buttons = _buttons(thread, cut=cut)
    if buttons:
        blocks.append(actions(*buttons))
    text = "\n".join((f"{asker} {shorten(shown, 1_200)}", state, *facts))
    return Message(text if len(text) <= MAX_TEXT else f"{asker} {state}", tuple(blocks))


def state_line(known: Known, wording: Wording) -> str:
    """Where the job stands, in honest words: the job API tells a status and nothing more."""
    if known.job is None:
        words = _UNSENT[known.trouble] if known.trouble else "Waiting to be sent to the agent."
        return _with_reason(words.format(ask=wording.ask), known)
    state = f"*{_status(known.job)}*"
    if known.trouble is None:
        return state
    return _with_reason(f"{state}\n{_BEHIND[known.trouble].format(ask=wording.ask)}", known)


def _with_reason(words: str, known: Known) -> str:
    return f"{words}\n{quote(known.trouble_words[:_MAX_FACT])}" if known.trouble and known.trouble_words else words


def _status(job: Job) -> str:
    if job.status == COMPLETED:
        return "Finished: the pull request is ready" if job.pr_link else "Finished without a pull request"
    known = {ACTIVE: "Active: the agent is at work", FAILED: "Failed", ARCHIVED: "Archived: takes no more follow-ups"}
    return known.get(job.status) or f"Status: {one_line(job.status, 100)}"


def _facts(job: Job | None) -> list[str]:
    if job is None:
        return []
    shown = [
        ("Repository", link(job.repository, _MAX_FACT) if job.repository else ""),
        ("Branch", one_line(job.ref, _MAX_FACT) if job.ref else ""),
        ("Model", one_line(job.model, _MAX_FACT) if job.model else ""),
        ("Pull request", link(job.pr_link, 1_000) if job.pr_link else ""),
    ]
    return [f"{name}: {value}" for name, value in shown if value]


def _buttons(thread: Thread, *, cut: bool) -> list[Block]:
    buttons = []
    url = safe_url(thread.known.job.pr_link) if thread.known.job else None
    if url is not None:
        buttons.append(link_button("Open the pull request", OPEN_PULL_REQUEST, url))
    if cut:
        buttons.append(button("Show the whole request", SHOW_PROMPT, thread.id))
    return buttons
