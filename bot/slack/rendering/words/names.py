"""Names of people and things for the placeholders of sentences, and replacements for unknown ones."""

from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import PlainTemplate, Template

PAGEHAND = Markup("@Pagehand")
WHOEVER_INSTALLED = Markup("whoever installed Pagehand")
WORKSPACE = Markup("the workspace I belong to")
NEWS = Markup("News.")
"""What a newer version recorded, and said nothing in."""
COMMAND = Template("`{command}`")
PART_OF_MESSAGE = PlainTemplate("a part of the message ({kind})")
"""Something in a message that cannot be read."""
