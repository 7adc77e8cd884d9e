"""What is said about replies that held more than words, or were changed after they were sent. Pure."""

from bot.domain.notices.messages import EarlierWords, ReplyEdited
from bot.domain.notices.posts import ContextCut, ReplyNotFullySent
from bot.slack.rendering.blocks import SEND_NEW_WORDS, Message, button, paragraph
from bot.slack.rendering.text import ELLIPSIS, one_line, opening, person, quote

_MAX_NAME, _MOST_NAMES = 100, 5
_WHAT_TO_DO = "Write what matters as text in a reply, or put it where the agent can reach it and reply with the place."
_CHANGED = {
    EarlierWords.ACCEPTED: "You changed a reply after it was sent: the agent has the earlier words.",
    EarlierWords.REJECTED: "You changed a reply that was not taken.",
    EarlierWords.UNCERTAIN: "You changed a reply after it went out: if it arrived, the agent has the earlier words.",
}


def not_fully_sent(message: ReplyNotFullySent) -> Message:
    """What of a reply was not sent, and what to do about it."""
    who = f"{person(message.person_id)} " if message.person_id else ""
    nothing = f"{who}Nothing was sent: your reply holds"
    held = " and ".join(part for part in (_files(message), _forwarded(message)) if part)
    if not held:
        return paragraph(f"{nothing} no words for the agent. Write what it is to do in a reply.")
    if message.words_sent:
        return paragraph(
            f"{who}Your words go to the agent, but not {held}: Pagehand cannot pass that on yet. {_WHAT_TO_DO}"
        )
    return paragraph(f"{nothing} {held} and no words, and Pagehand cannot pass that on yet. {_WHAT_TO_DO}")


def context_cut(message: ContextCut) -> Message:
    """What of all that belongs to a request the agent does not get."""
    who = f"{person(message.person_id)} " if message.person_id else ""
    told = []
    if message.link_only:
        told.append(f"The agent gets the link only, not the content, of {_names(message.link_only)}.")
    if message.name_only:
        told.append(
            f"It gets neither the content of {_names(message.name_only)} nor a link: paste what matters as text."
        )
    if message.thread_unread:
        told.append("Slack did not give the thread's messages: write what matters of them in a reply.")
    if message.cut_files:
        told.append(f"There was no room for all of {_names(message.cut_files)}.")
    if message.left_out:
        told.append("There was no room for all that was said or forwarded.")
    if message.masked:
        told.append(f"Masked, since it looked secret: {', '.join(one_line(kind, 40) for kind in message.masked)}.")
    return paragraph(f"{who}Your request goes to the agent. {' '.join(told)}")


def _names(names: tuple[str, ...]) -> str:
    shown = [one_line(name, _MAX_NAME) or "a file" for name in names[:_MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def edited(message: ReplyEdited) -> Message:
    """The offer to send what a reply says after it was changed."""
    shown, cut = opening(message.text, characters=300, lines=4)
    now = quote(shown + (ELLIPSIS if cut else ""))
    request = message.request_id[:2_000]
    buttons = (button("Send the new words", SEND_NEW_WORDS, request),) if request else ()
    return paragraph(
        f"{_CHANGED[message.earlier]} It says now:\n{now}\nDo you want to send that as a follow-up?", *buttons
    )


def _files(message: ReplyNotFullySent) -> str:
    count = message.file_count
    if count == 0:
        return ""
    names = [one_line(name, _MAX_NAME) for name in message.file_names if name.strip()]
    left = count - len(names)
    listed = ", ".join(names) + (f" and {left} more" if names and left > 0 else "")
    return f"{count} file{'s' if count > 1 else ''}" + (f" ({listed})" if listed else "")


def _forwarded(message: ReplyNotFullySent) -> str:
    return "a forwarded message" if message.forwarded else ""
