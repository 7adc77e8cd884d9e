"""The Web API's methods. Slack's answer to an unknown method is the answer to any other."""

from bot.workspace.web_api.method import Method
from bot.workspace.web_api.methods import conversations, identity, manifests, messages, views

METHODS: dict[str, Method] = {
    **conversations.METHODS,
    **identity.METHODS,
    **manifests.METHODS,
    **messages.METHODS,
    **views.METHODS,
}
