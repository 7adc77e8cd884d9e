"""The Web API's methods, one file a family.

What is not here is answered as Slack answers a method it does not know. ``views.*`` belong in a file of their own.
"""

from bot.workspace.call import Method
from bot.workspace.methods import chat, connections, conversations, reactions, users

METHODS: dict[str, Method] = {
    **connections.METHODS,
    **chat.METHODS,
    **conversations.METHODS,
    **reactions.METHODS,
    **users.METHODS,
}
