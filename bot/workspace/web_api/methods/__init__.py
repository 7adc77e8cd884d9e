"""The Web API's methods. Slack's answer to an unknown method is the answer to any other."""

from bot.workspace.web_api.method import Method
from bot.workspace.web_api.methods import apps, conversations, files, messages, views

METHODS: dict[str, Method] = apps.METHODS | conversations.METHODS | files.METHODS | messages.METHODS | views.METHODS
