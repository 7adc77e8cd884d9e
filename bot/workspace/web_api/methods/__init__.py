"""The Web API's methods, one file a family.

What is not here is answered as Slack answers a method it does not know. ``views.*`` belong in a file of their own.
"""

from bot.workspace.web_api.method import Method
from bot.workspace.web_api.methods import apps, auth, chat, conversations, reactions, users

METHODS: dict[str, Method] = {
    **auth.METHODS,
    **apps.METHODS,
    **chat.METHODS,
    **conversations.METHODS,
    **reactions.METHODS,
    **users.METHODS,
}
