"""Immediate answers to a command, click or reply that is not recorded, which only that person sees."""

from collections.abc import Mapping

from bot.domain.commands.options import OptionFault
from bot.notices.said import Markup
from bot.slack.rendering.words.template import Template

RECORDED = Markup("On it.")
STILL_RECORDING = Markup(
    "This is taking longer than usual. If nothing appears in the channel within a minute, please try again."
)
NOT_RECORDED = Markup(
    "I couldn't save that: my database isn't available. Nothing was started or sent; please try again in a minute."
)
NO_RECORD = Markup(
    "Nothing was done: I no longer have a record of this job. Records are deleted some time after a job ends, or on "
    "request."
)
COMMAND_UNREADABLE = Markup("Nothing was started: I couldn't read Slack's message. Please try again.")
OTHER_INSTALLATION = Markup(
    "Nothing was started: I'm set up for another workspace or app. Please tell whoever installed Pagehand."
)
"""For the operator."""
UNKNOWN_COMMAND = Template("I don't know this command. Try `{command} help`.")
UNKNOWN_INTERACTION = Template(
    "Nothing was done: I don't know this button or shortcut. `{command} help` shows what I can do."
)
UNKNOWN_JOB = Template(
    "Your reply wasn't sent: I no longer have a usable record of this job. Start a new one with {slash}."
)
WRONG_OPTION: Mapping[OptionFault, Template] = {
    OptionFault.TWICE: Template(
        "Nothing was started: `{name}` is there twice. Write it once, before the task, like {example}."
    ),
    OptionFault.EMPTY: Template(
        "Nothing was started: `{name}:` needs a name. Write it right after the colon, like {example}."
    ),
    OptionFault.UNCLOSED: Template(
        "Nothing was started: the quotation mark after `{name}:` isn't closed. Write the name without one: {example}."
    ),
}
EXAMPLE_OF_QUIET = Markup("`quiet`")
EXAMPLE_OF_PROJECT = Markup("`project:NAME`")
WORD_WITHOUT_JOB = Template(
    "Nothing was done: `!{word}` only works in a job's thread. Write it there, or see `{command} help`."
)
WRITE_TASK = "Write the task"
"""A button, below the next."""
FORWARDED_ALONE = Markup("What should I do with this message? Press *Write the task*: the message goes along.")
EDITED_TOO_LATE = Template(
    "Nothing was started: an edit can ask for a job only within ten minutes of the message. Write a new message, or "
    "use {slash}."
)
TASK_MISSING = Template(
    'Nothing was started: the task is missing. Write it after the options: `{command} quiet Replace "colour" with '
    '"color"`.'
)
