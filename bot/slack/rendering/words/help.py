"""The introduction in a channel; the help after the command, and in a job's thread. Lists, whose entries are lines of
one message.
"""

from collections.abc import Mapping

from bot.domain.commands.commands import LoneWord
from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

INTRODUCTION = (
    Template("*Hello, I'm {bot}: I hand documentation tasks to an agent and bring back the pull request.*"),
    Template("Type `{command}` and what to do, or mention me where a question about the docs came up."),
    Template("A card shows how it goes, and replies in its thread steer the agent. More: `{command} help`."),
)
TRY_IT = "Try it"
WORKFLOW_CANNOT_ASK = Template(
    "Nothing was started: a workflow can't ask me, only people can. Mention me with the task, or type `{command}`."
)
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
HELP_IN_THREAD = (
    Template("• `!status`: how the job is · `!stop`: stop it · `!retry`: start it again if it failed"),
    Template("• `!discard`: throw away what the agent did before it failed"),
    Template("• `!mute`: send no replies, post only failures and pull requests · `!unmute`: end that"),
    Template("• `!new` and a task: another job in this thread"),
    Template("• Replies that start with `//` stay between people."),
)
ALL_REPLIES_GO = Markup("*Replies in this thread go to the agent.* These words, on their own, are for me:")
MENTIONS_GO = Template("*Replies that mention {bot} go to the agent.* These words, on their own, are for me:")
