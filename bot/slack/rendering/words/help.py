"""The help after the command: lines of one message."""

from collections.abc import Mapping

from bot.domain.commands.commands import LoneWord
from bot.slack.rendering.words.template import Template

HELP = (
    Template("*Pagehand hands documentation tasks to an agent and brings back the pull request.*"),
    Template('• Start: `{command} Replace "colour" with "color"`. A card shows how it goes.'),
    Template("• Ask what works on your pages: `{command} What can you do?`"),
    Template("• Or mention {bot} with the task, also in a thread, which I then read. A direct message works, too."),
    Template("• Options before the task: `project:NAME` picks the project; `quiet` mentions nobody at the end."),
    Template("• Steer: reply in the job's thread. In a thread that people began, mention {bot} in the reply."),
    Template("• Talk among yourselves: replies that start with `//` or with somebody's name aren't sent."),
    Template("• Alone on a line in the thread: `!status`, `!stop`, `!discard`, `!mute`, `!unmute`, `!retry`, `!help`."),
    Template("• Another job in the same thread: `!new` and the task."),
    Template("• Stop: `!stop`, the card's *Stop* button, or :x: on the card."),
    Template("• Marks on a reply: :eyes: received, :white_check_mark: sent to the agent, :warning: see the thread."),
    Template('• `status`, `list`, `cancel` and `stop` alone show this help. As a task: `{command} "{word}"`.'),
)
NO_SUCH_COMMAND: Mapping[LoneWord, Template] = {
    LoneWord.STATUS: Template(
        "Nothing was started: `{command} status` is not a command. Each job's card shows its newest state."
    ),
    LoneWord.LIST: Template(
        "Nothing was started: `{command} list` is not a command. Your jobs are listed on my Home tab."
    ),
    LoneWord.CANCEL: Template(
        "Nothing was started: `{command} cancel` is not a command. To stop a job, write `!stop` in its thread."
    ),
    LoneWord.STOP: Template(
        "Nothing was started: `{command} stop` is not a command. To stop a job, write `!stop` in its thread."
    ),
}
