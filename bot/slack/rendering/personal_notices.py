"""What is said to one person only. Pure."""

from bot.domain.notices.messages import (
    ActionAnswer,
    ActionAnswered,
    AnswerMissing,
    AnswerRequested,
    CardNotPosted,
    PromptRequested,
)
from bot.domain.threads import Thread
from bot.slack.rendering.agent_markdown import defused, markdown_pieces
from bot.slack.rendering.blocks import Message, markdown, paragraph, section
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import one_line, opening, pieces, quote, shorten

_PROMPT_PIECE, _PIECES_A_MESSAGE = 2_800, 3
"""Slack refuses messages whose blocks are too long together (its limit is not documented): stay under 9,000."""
_ANSWER_PIECE = 7_000
"""Characters of Markdown in one message: defusing makes it a little longer."""
_MISSING = {
    AnswerMissing.NEWER: "The whole of this answer is not kept any more: the agent has given another one since.",
    AnswerMissing.GONE: "The whole of this answer is not kept any more: the job API does not have it.",
    AnswerMissing.NOT_NOW: "The job API does not answer at the moment. Please press the button again in a minute.",
}
_IN_DOUBT = "It is not known whether this has reached the job's thread:"
_NOT_INVITED = frozenset(
    {"", "not_in_channel", "channel_not_found", "method_not_supported_for_channel_type", "private"}
)
_ANSWERS = {
    ActionAnswer.SENT_AGAIN: "It is being sent again.",
    ActionAnswer.ALREADY_ACCEPTED: "There is no need to: it has been sent or taken already.",
    ActionAnswer.NOT_YOURS: "Only the person who wrote it can send it again.",
    ActionAnswer.WITHDRAWN: (
        "It was deleted in the meantime, or is not for the agent any more, so it is not sent again."
    ),
    ActionAnswer.FIRST_WITHDRAWN: (
        "Several replies went out as one message, and the first of them was deleted in the meantime, so it is not sent "
        "again. Please write once more what should still be done."
    ),
    ActionAnswer.NEW_WORDS_SENT: "The new words are on their way to the agent.",
    ActionAnswer.NOTHING_NEW: "There is nothing new to send: what the reply says was sent, or it was deleted.",
    ActionAnswer.NOTHING_TO_STOP: "There is nothing to stop: the agent is not at work on this job.",
    ActionAnswer.SEE_THREAD: "It was not sent; the thread tells why.",
    ActionAnswer.MUTED: (
        "This job is muted: replies are not sent, and only failures and pull requests are told. `!unmute` ends that."
    ),
    ActionAnswer.UNMUTED: "This job is not muted any more: replies go to the agent again.",
    ActionAnswer.NOT_MUTED: "This job is not muted.",
    ActionAnswer.REPLY_NOT_SENT_MUTED: (
        "Your reply was not sent, since this job is muted. Write `!unmute`, and then write it again."
    ),
    ActionAnswer.EDITED_TOO_LATE: (
        "Nothing was started: an edit can ask for a job only in the first ten minutes after the message was written. "
        "Write a new message with `!new` and what is to be done."
    ),
    ActionAnswer.NO_JOB_THERE: (
        "Nothing was done: what you wrote in another thread here is about a job, and there is none in that thread. "
        "Write it in the thread of the job that it is about."
    ),
    ActionAnswer.STOPPED_UNSENT: "The job was stopped before it was sent.",
    ActionAnswer.STOP_UNCERTAIN: (
        "It is not known whether the job was started, so Pagehand knows nothing to stop. The thread tells what to do."
    ),
    ActionAnswer.RESTORED: (
        "Pagehand was restored from a backup, so it is not known whether this was done. Do it again if its thread does "
        "not show it."
    ),
    ActionAnswer.STARTED_AGAIN: "It is being started again, as a job of its own.",
    ActionAnswer.NOT_TO_BE_RETRIED: (
        "It was not started again: only a job that failed, or changed nothing, can be, and only once. To change what "
        "it did, reply in its thread."
    ),
    ActionAnswer.HELD_SENT: "Your reply goes to the agent.",
    ActionAnswer.HELD_ALL_SENT: (
        "Your reply goes to the agent, and so does all that you write in this thread from now on."
    ),
    ActionAnswer.SENT_FOR_ITS_PROJECT: (
        "The project was not changed: the job had been sent. *Switch project…* in the card's menu starts it anew for "
        "another one."
    ),
    ActionAnswer.SENT_BEFORE_DELETED: (
        "The agent has it already: what you deleted, or took back, was sent before. Reply with what it should do "
        "instead, or write `!stop`."
    ),
    ActionAnswer.HELD_EXPIRED: (
        "What you wrote in this thread was not sent: for a week, you did not say whether it is for the agent. Write it "
        "again if it still matters."
    ),
    ActionAnswer.HELD_DISCARDED: "Your reply was not sent.",
    ActionAnswer.PROJECT_CHOSEN: "The project is chosen.",
    ActionAnswer.PROJECT_SWITCHED: (
        "The job begins anew for that project, with the same words, in the same thread. The one before is stopped, if "
        "it is still at work."
    ),
    ActionAnswer.PROJECT_SETTLED: (
        "Nothing was changed: the job is for that project already, was switched to another one already, is being sent, "
        "or its project is not known any more."
    ),
    ActionAnswer.START_ENDED: (
        "Nothing was started: this request had ended before, and has no thread. Please ask again."
    ),
    ActionAnswer.NOT_FOR_YOU: "Only somebody who asked for this job or steered it, or who was asked, can do that.",
    ActionAnswer.SLACK_AWAY: (
        "Slack did not answer for so long that this was given up: Pagehand could not find out whether you may ask for "
        "it. Please try again."
    ),
    ActionAnswer.OTHER_WORKSPACE: "Only people of the workspace this job was started in can steer it.",
    ActionAnswer.UNKNOWN_WORKSPACE: (
        "Your reply was not sent: only people of the workspace this job was started in can steer it, and Slack did not "
        "say which one you are from. That may pass: please write it again, as words alone."
    ),
}


def answer(message: ActionAnswered) -> Message:
    """The answer to a click, or to a reply that is not sent."""
    return paragraph(_ANSWERS[message.answer])


def job_id(thread: Thread) -> Message:
    """The job's id, as text to copy."""
    if thread.state.job is None:
        return paragraph("The job has no id yet: the job API gives it one when it has taken the request.")
    return paragraph(f"The job's id, to copy:\n{one_line(thread.state.job.id, 1_000)}")


def in_doubt(message: Message) -> Message:
    """A message that may be in the thread already."""
    return Message(f"{_IN_DOUBT}\n{message.text}", (section(_IN_DOUBT), *message.blocks))


def card_not_posted(thread: Thread, message: CardNotPosted, message_context: MessageContext) -> Message:
    """Why no job was started, and what to do about it; with what was asked for, since no card keeps it."""
    if message.reason in _NOT_INVITED and thread.channel_id.startswith("D"):
        text = (
            "Pagehand is not part of this direct message, so no job was started. Ask again in a channel, or in a "
            "direct message to Pagehand itself."
        )
    elif message.reason in _NOT_INVITED:
        text = (
            "Pagehand is not in this channel, so no job was started. Invite it with "
            f"`/invite` {message_context.bot} and ask again."
        )
    elif message.reason == "is_archived":
        text = "This channel is archived, so no job was started. Ask again in another one."
    elif message.missing_scopes:
        text = _not_granted(message, message_context)
    else:
        text = (
            f"Slack does not let Pagehand post in this channel ({one_line(message.reason, 100)}), so no job was "
            f"started. Ask again in another channel, or ask {message_context.ask}."
        )
    return paragraph(f"{text}\nYou asked:\n{quote(opening(thread.prompt, characters=300, lines=4)[0])}")


def _not_granted(message: CardNotPosted, message_context: MessageContext) -> str:
    scopes = one_line(", ".join(message.missing_scopes), 200)
    ask = f"Please ask {message_context.ask} to grant it, and ask again afterwards."
    if not message.may_be_posted:
        return f"Slack has not granted Pagehand the scope {scopes}, so no job was started. {ask}"
    return (
        "Slack did not say whether the job's card arrived, and Pagehand may not look for it: it is not granted the "
        f"scope {scopes}. So no job was started; should the card be there, it stands for nothing. {ask}"
    )


def whole_answer(message: AnswerRequested) -> list[Message]:
    """All that an agent answered, in as many messages as it takes; or why that cannot be shown."""
    if message.missing is not None:
        return [paragraph(_MISSING[message.missing])]
    parts = [part for part in map(defused, markdown_pieces(message.text, _ANSWER_PIECE)) if part.strip()] or ["(empty)"]
    made = []
    for number, part in enumerate(parts):
        title = "It goes on:" if number else "The whole answer:"
        made.append(Message(f"{title}\n{shorten(part, 3_000)}", (section(title), markdown(part))))
    return made


def whole_prompt(message: PromptRequested) -> list[Message]:
    """All that was asked for, in as many messages as it takes."""
    parts = pieces(message.prompt, _PROMPT_PIECE) or ["(empty)"]
    made = []
    for start in range(0, len(parts), _PIECES_A_MESSAGE):
        group = parts[start : start + _PIECES_A_MESSAGE]
        title = "The whole request:" if start == 0 else "It goes on:"
        made.append(
            Message(f"{title}\n{shorten(group[0], 3_000)}", (section(title), *(section(quote(p)) for p in group)))
        )
    return made
