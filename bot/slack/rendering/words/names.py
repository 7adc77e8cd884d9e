"""Names of people and things, where a sentence has a gap for one; and what is said of the unknown."""

from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

PAGEHAND = Markup("@Pagehand")
WHOEVER_INSTALLED = Markup("whoever installed Pagehand")
WORKSPACE = Markup("the workspace I belong to")
NEWS = Markup("News.")
"""What a newer version recorded, and said nothing in."""
COMMAND = Template("`{command}`")
