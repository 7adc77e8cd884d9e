"""What each notice says: what happened, what it means, what to do next. Pure."""

from collections.abc import Callable, Mapping

from bot.domain.models import Notice, RequestKind, Thread, What
from bot.slack.blocks import (
    OPEN_PULL_REQUEST,
    SEND_AGAIN,
    Block,
    Message,
    actions,
    button,
    confirmation,
    link_button,
    section,
)
from bot.slack.text import link, one_line, opening, person, pieces, quote, safe_url, shorten
from bot.slack.wording import Wording

_MAX_REASON = 1_000
_PROMPT_PIECE, _PIECES_A_MESSAGE = 2_800, 3
"""Slack refuses messages whose blocks are too long together (its limit is not documented): stay under 9,000."""


def messages(thread: Thread, notice: Notice, wording: Wording) -> list[Message]:
    """What to say, in as many messages as it takes (one, but for a whole prompt)."""
    if notice.what is What.WHOLE_PROMPT:
        made = _whole_prompt(notice.facts.get("text", ""))
    else:
        made = [_SAYINGS.get(notice.what, _unknown)(thread, notice.facts, wording)]
    return [message.in_words() for message in made] if notice.plain else made


def _said(text: str, *buttons: Block) -> Message:
    return Message(text, (section(text), actions(*buttons)) if buttons else (section(text),))


def _started(_: Thread, facts: Mapping[str, str], __: Wording) -> Message:
    place = [
        f"{word} {link(facts[name], 300)}"
        for name, word in (("repository", "in"), ("ref", "on branch"), ("model", "with"))
        if facts.get(name)
    ]
    where = f" {', '.join(place)}" if place else ""
    return _said(f"The agent has started{where}. Reply here to steer it; what begins with `//` is not sent.")


def _active_again(_: Thread, __: Mapping[str, str], ___: Wording) -> Message:
    return _said("The agent is at work again.")


def _finished(thread: Thread, facts: Mapping[str, str], _: Wording) -> Message:
    found, again = facts.get("link", ""), " again" if facts.get("again") == "yes" else ""
    asker = person(thread.asker_id)
    if not found:
        return _said(
            f"{asker} Finished{again} without a pull request. If one turns up in the next minutes, it is posted here. "
            "Reply here to ask for more."
        )
    return _with_link(f"{asker} Finished{again}. The pull request is ready:", found)


def _late_link(thread: Thread, facts: Mapping[str, str], _: Wording) -> Message:
    changed = facts.get("changed") == "yes"
    news = "The pull request has moved to another link:" if changed else "There is a pull request now:"
    return _with_link(f"{person(thread.asker_id)} {news}", facts.get("link", ""))


def _with_link(words: str, found: str) -> Message:
    url = safe_url(found)
    text = f"{words}\n{link(found)}"
    return _said(text, link_button("Open the pull request", OPEN_PULL_REQUEST, url)) if url else _said(text)


def _failed(thread: Thread, _: Mapping[str, str], wording: Wording) -> Message:
    return _said(
        f"{person(thread.asker_id)} The agent reports that the job failed; it gives no reason. Reply here to have it "
        f"try again, or start afresh with {wording.slash}."
    )


def _archived(_: Thread, __: Mapping[str, str], wording: Wording) -> Message:
    return _said(f"This job is archived and takes no more follow-ups. Start a new one with {wording.slash}.")


def _gone(_: Thread, __: Mapping[str, str], wording: Wording) -> Message:
    return _said(
        "The job API no longer knows this job, so there will be no more news of it. "
        f"Start a new one with {wording.slash}."
    )


def _damaged(_: Thread, __: Mapping[str, str], wording: Wording) -> Message:
    return _said(
        "Pagehand's own record of this job is damaged, so there will be no more news of it here, and replies can't be "
        f"sent. What the agent does is not affected. Start a new job with {wording.slash}."
    )


def _out_of_reach(_: Thread, facts: Mapping[str, str], __: Wording) -> Message:
    why = one_line(facts.get("reason", ""), _MAX_REASON) or "can't be reached"
    meaning = "What you asked for is kept and sent" if facts.get("request") == "yes" else "News of this job comes"
    return _said(f"The job API {why}. {meaning} as soon as it answers again; there is nothing for you to do.")


def _not_allowed(_: Thread, facts: Mapping[str, str], wording: Wording) -> Message:
    status = facts.get("status", "")
    why = "its key may not do this, or not from here (403)" if status == "403" else "its key is not accepted (401)"
    return _said(
        f"The job API does not let Pagehand in: {why}. Please ask {wording.ask} to put that right. "
        "What you asked for is kept and goes out by itself afterwards."
    )


def _back(_: Thread, __: Mapping[str, str], ___: Wording) -> Message:
    return _said("The job API answers again. Everything goes on from where it stopped.")


_REFUSALS = {
    "api": "The job API refused {it}. Change it and send it again.",
    "project": "{It} was not sent: the job API does not know the project that Pagehand is set up for. "
    "Please ask {ask} to check the project id.",
    "gone": "{It} was not sent: the job API no longer knows this job. Start a new one with {slash}.",
    "archived": "{It} was not sent: this job is archived. Start a new one with {slash}.",
    "not_started": "{It} was not sent: this job was never started. Start a new one with {slash}.",
    "too_old": "{It} was not sent: the job API could not be reached for too long. Send it again if it still matters.",
    "unreadable": "{It} was not sent: Pagehand's own record of it is damaged. Please write it again.",
}


def _refused(_: Thread, facts: Mapping[str, str], wording: Wording) -> Message:
    reason, it = facts.get("reason", "api"), _named(facts)
    form = _REFUSALS.get(reason, "{It} was refused.")
    text = _to(facts) + form.format(it=it, It=it[0].upper() + it[1:], ask=wording.ask, slash=wording.slash)
    own = opening(facts.get("words", ""), characters=_MAX_REASON, lines=10)[0]
    if own:
        text = f"{text}\nIt said:\n{quote(pieces(own, 2_000)[0])}"
    return _said(text, _send_again(facts)) if reason == "too_old" and facts.get("request") else _said(text)


def _unsure(_: Thread, facts: Mapping[str, str], __: Wording) -> Message:
    text = (
        f"{_to(facts)}It is not known whether {_named(facts)} reached the job API: the connection broke while it was "
        "being sent. Wait a moment and see whether the agent starts on it; if not, send it again."
    )
    if facts.get("kind") == RequestKind.START:
        text += " Replies in this thread are kept, and go to the agent once it is known to have started."
    return _said(text, _send_again(facts)) if facts.get("request") else _said(text)


def _send_again(facts: Mapping[str, str]) -> Block:
    ask = confirmation(
        "Send it again?",
        "It may have arrived the first time; then the agent gets it twice.",
        "Send again",
        "Leave it",
    )
    return button("Send again", SEND_AGAIN, facts.get("request", "")[:2_000], confirm=ask)


def _named(facts: Mapping[str, str]) -> str:
    return "this follow-up" if facts.get("kind") == "follow_up" else "this request"


def _to(facts: Mapping[str, str]) -> str:
    return f"{person(facts['person'])} " if facts.get("person") else ""


_UNINVITED = frozenset({"not_in_channel", "channel_not_found", "method_not_supported_for_channel_type", "private"})


def _cannot_post(thread: Thread, facts: Mapping[str, str], wording: Wording) -> Message:
    reason = facts.get("reason", "")
    if reason in _UNINVITED or not reason:
        text = (
            "Pagehand is not in this channel, so no job was started. Invite it with "
            f"`/invite` {wording.bot} and ask again."
        )
    elif reason == "is_archived":
        text = "This channel is archived, so no job was started. Ask again in another one."
    else:
        text = (
            f"Slack does not let Pagehand post in this channel ({one_line(reason, 100)}), so no job was started. "
            f"Ask again in another channel, or ask {wording.ask}."
        )
    return _said(f"{text}\nYou asked:\n{quote(opening(thread.prompt, characters=300, lines=4)[0])}")


_ANSWERS = {
    "sent_again": "It is being sent again.",
    "already_taken": "There is no need to: it has been sent or taken already.",
    "not_yours": "Only the person who wrote it can send it again.",
    "external": "Only people of the workspace this job was started in can steer it.",
}


def _answer(_: Thread, facts: Mapping[str, str], __: Wording) -> Message:
    answer = facts.get("answer", "")
    return _said(_ANSWERS.get(answer) or one_line(answer, _MAX_REASON) or "Done.")


def _unknown(_: Thread, facts: Mapping[str, str], __: Wording) -> Message:
    """A row that a newer version wrote: say what it holds rather than nothing."""
    return _said(shorten(", ".join(f"{name}: {value}" for name, value in facts.items()), _MAX_REASON) or "News.")


def _whole_prompt(text: str) -> list[Message]:
    parts = pieces(text, _PROMPT_PIECE) or ["(empty)"]
    made = []
    for start in range(0, len(parts), _PIECES_A_MESSAGE):
        group = parts[start : start + _PIECES_A_MESSAGE]
        title = "The whole request:" if start == 0 else "It goes on:"
        made.append(
            Message(f"{title}\n{shorten(group[0], 3_000)}", (section(title), *(section(quote(p)) for p in group)))
        )
    return made


_SAYINGS: Mapping[What, Callable[[Thread, Mapping[str, str], Wording], Message]] = {
    What.STARTED: _started,
    What.ACTIVE_AGAIN: _active_again,
    What.FINISHED: _finished,
    What.FAILED: _failed,
    What.ARCHIVED: _archived,
    What.LINK: _late_link,
    What.GONE: _gone,
    What.DAMAGED: _damaged,
    What.OUT_OF_REACH: _out_of_reach,
    What.NOT_ALLOWED: _not_allowed,
    What.BACK: _back,
    What.REFUSED: _refused,
    What.UNSURE: _unsure,
    What.CANNOT_POST: _cannot_post,
    What.ANSWER: _answer,
}
