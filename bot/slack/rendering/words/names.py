"""Names of people and things for the placeholders of sentences, and replacements for unknown ones."""

from bot.notices.said import Markup
from bot.slack.rendering.words.template import PlainTemplate, Template

PAGEHAND = Markup("@Pagehand")
WHOEVER_INSTALLED = Markup("whoever installed Pagehand")
WORKSPACE = Markup("the workspace I belong to")
LINK_TO_JOB = Template("<{url}|Go to the job>")
"""Below a message that is not in the job's thread."""
REPLY = Markup("Reply here")
MENTION = Markup("Mention Pagehand here")
COMMAND = Template("`{command}`")
PART_OF_MESSAGE = PlainTemplate("a part of the message ({kind})")
"""Something in a message that cannot be read."""
