"""The channels of the workspace: what stands in them, and what an administrator does with them."""

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, Message
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State


class Channels:
    """The channels, by name or id: ``channels["docs"]``. A person's name stands for their conversation with the app.

    Each method raises SlackError ``channel_not_found`` where there is no such channel.

    Args:
        state: The workspace.
        app: The app.
    """

    def __init__(self, state: State, app: AppConfig) -> None:
        self._state = state
        self._app = app

    def __getitem__(self, name: str) -> Channel:
        if found := self._state.find_channel(name):
            return found
        if user := self._state.find_user(name):
            return self._state.direct_channel(self._app.bot_user_id, user.id)
        raise SlackError("channel_not_found")

    def messages(self, name: str) -> list[Message]:
        """Returns every message of a channel, replies included, oldest first; ephemerals are not among them."""
        return list(self._state.conversation(self[name]))

    def thread(self, name: str, ts: str) -> list[Message]:
        """Returns a thread, its first message included, oldest first."""
        return self._state.conversation(self[name]).thread(ts)

    def archive(self, name: str) -> None:
        self._state.set_archived(self[name], self[name].creator, archived=True)

    def unarchive(self, name: str) -> None:
        self._state.set_archived(self[name], self[name].creator, archived=False)

    def add_bot(self, name: str) -> None:
        self._state.join(self[name], self._app.bot_user_id)

    def remove_bot(self, name: str) -> None:
        self._state.leave(self[name], self._app.bot_user_id)
