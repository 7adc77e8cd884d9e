"""The Web API's methods, one file a family.

What is not here is answered as Slack answers a method it does not know.
"""

from bot.workspace.web_api.method import Method
from bot.workspace.web_api.methods import apps, chat, conversations, files, reactions, usergroups, users, views

METHODS: dict[str, Method] = {
    **apps.METHODS,
    **chat.METHODS,
    **conversations.METHODS,
    **files.METHODS,
    **reactions.METHODS,
    **usergroups.METHODS,
    **users.METHODS,
    **views.METHODS,
}
