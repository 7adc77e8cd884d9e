"""Names of people and things, where a sentence has a gap for one."""

from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

PAGEHAND = Markup("@Pagehand")
WHOEVER_INSTALLED = Markup("whoever installed Pagehand")
WORKSPACE = Markup("the workspace I belong to")
COMMAND = Template("`{command}`")
