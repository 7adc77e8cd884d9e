"""The forms (modals): titles, labels, hints and errors. Slack shows most of them without markup."""

from bot.notices.said import Markup
from bot.slack.rendering.words.template import PlainTemplate, Template

NEW_JOB = "New job"
HAND_OVER = "Hand to Pagehand"
FOLLOW_UP = "Follow up"
YOUR_ANSWER = "Your answer"
YOUR_DEFAULTS = "Your defaults"
MESSAGE = "Pagehand"
START = "Start"
SEND = "Send"
SAVE = "Save"
CANCEL = "Cancel"
CLOSE = "Close"
WHAT_TO_DO = "What should be done?"
WHAT_NEXT = "What should the agent do next?"
OTHER_ANSWER = "Another answer"
ANSWER_MISSING = "Please answer this."
PROMPT_HINT = "The agent gets your words exactly as you write them."
ANSWERS_IN = Template("The job's thread will be in {channel}.")
CHANNEL = "Channel"
CHOOSE_CHANNEL = "Choose a channel"
PROJECT = "Project"
ANY_PROJECT = "By the channel or by words in the request"
NO_SUCH_PROJECT = PlainTemplate("There is no project called {name}. Please choose one of these.")
NO_SUCH_PROJECT_BUT_ONE = Template("There is no project called {name}. The job is for the only one there is.")
TELL_ME = "When it ends"
MENTION_ME = "Mention me"
MENTION_NOBODY = "Mention nobody"
WHAT_GOES_ALONG = "What goes along?"
THIS_MESSAGE = "This message only"
WHOLE_THREAD = "The whole thread"
CONTEXT = "Context, as the agent gets it"
CONTEXT_PART = PlainTemplate("Context, as the agent gets it ({number} of {count})")
MASKED = Template("Hidden, so that it stays in Slack: {kinds}.")
OUTSIDE_CHANNEL = Markup("I'm not in this channel, so I can't read the thread: only this message goes along.")
CONTEXT_CUT = Markup("The conversation is too long to go along as a whole: its latest part is kept.")
FILES = Template("Files that go along: {names}.")
UNNAMED_FILE = "one without a name"
LOADING = Markup("One moment…")
PROMPT_MISSING = "Please write what the agent should do."
PROMPT_TOO_LONG = PlainTemplate("This is too long: at most {limit:,} characters can be sent. Please shorten it.")
CHANNEL_MISSING = "Please choose a channel for the job's thread."
SECRET_FOUND = PlainTemplate("This looks like a secret ({kinds}) and would leave Slack. Please take it out.")
NOT_RECORDED_HERE = (
    "I couldn't save that: my database isn't available. Your text is still here; please press the button again in a "
    "minute."
)
COULD_NOT_OPEN = Markup("The form couldn't be opened. Please try again.")
COULD_NOT_FILL = Markup("The form couldn't be filled in. Please close it and try again.")
