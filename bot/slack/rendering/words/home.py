"""Home: a person's open questions, jobs and defaults, and for administrators the health."""

from collections.abc import Mapping

from bot.notices.said import Markup
from bot.slack.rendering.words.template import Template

WAITING_FOR_YOU = "Waiting for you"
AGENT_ASKS = Template("• {prompt}: the agent has a question")
WHICH_PROJECT = Template("• {prompt}: which project is it for? I asked you in {channel}")
WHICH_PROJECT_DIRECTLY = Template("• {prompt}: which project is it for? I asked you in our direct messages")
MORE_WAITING = Markup("• …")
YOUR_JOBS = "Your jobs"
NO_OLDER_JOBS = Markup("There are no older jobs.")
NO_JOBS = Markup("You haven't asked for a job yet. Try one, here or in any channel:")
EXAMPLE_TASK = "Fix the typos"
EXAMPLE = Template("> {slash} {task}")
TRY_EXAMPLE = "Try this example"
OTHER_WAYS = Template(
    "You can also mention {bot} where the question came up, or choose *Hand to Pagehand* in a message's menu. The pull "
    "request comes into the thread, and replies there steer the agent."
)
JOB = Template("*{prompt}*\n{state}")
PROMPT_MISSING = Markup("a job")
LINK_TO_ANSWER = Markup("answer it")
LINK_TO_PULL_REQUEST = Markup("pull request")
LINK_TO_THREAD = Markup("thread")
LINK = Template("· <{url}|{label}>")
RETRY = "Retry"
STOP = "Stop"
NEWER = "Newer"
OLDER = "Older"
START_JOB = "Start a job"
YOUR_DEFAULTS = "Your defaults"
CHANGE = "Change"
DEFAULT_PROJECT = Template("Project: {project}")
NO_DEFAULT_PROJECT = Markup("Project: chosen by the channel or by words in the request")
MENTIONED = Markup("When a job ends: you are mentioned")
NOT_MENTIONED = Markup("When a job ends: nobody is mentioned")
HEALTH = "How Pagehand is"
ALL_WELL = Markup(":white_check_mark: All well.")
FAILS_SINCE_JUST_NOW = Template(":warning: {part}: failing since a moment ago ({reason})")
FAILS_FOR_MINUTES = Template(":warning: {part}: failing for {count} minutes ({reason})")
PARTS: Mapping[str, Markup] = {
    "slack connection": Markup("Connection to Slack"),
    "recording": Markup("Recording what people ask for"),
    "request preparer": Markup("Preparing requests"),
    "file uploader": Markup("Passing on files"),
    "request sender": Markup("Sending requests to the agent"),
    "job poller": Markup("Following jobs"),
    "outbox": Markup("Posting in Slack"),
    "home publisher": Markup("Home tabs"),
}
UPDATED = Template("Updated <!date^{seconds}^{{date_short_pretty}} {{time}}|a moment ago>")
