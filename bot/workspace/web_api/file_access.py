"""Which files the app may read: those in conversations that its bot is in, and in public channels."""

from dataclasses import dataclass

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, File, Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State


@dataclass(frozen=True)
class ReadableFile:
    """A file, and the conversations that it was shared in as far as the app knows of them."""

    file: File
    channels: tuple[Channel, ...]

    def places(self) -> Json:
        """Returns the fields that name the conversations."""
        named = {"channels": "channels", "groups": "groups", "im": "ims"}
        fields: dict[str, list[str]] = {name: [] for name in named.values()}
        for channel in self.channels:
            fields[named[channel.scope_family]].append(channel.id)
        return {**fields, "is_public": bool(fields["channels"])}


def readable_file(state: State, app: AppConfig, file_id: str) -> ReadableFile:
    """Returns a file that the app may read, a deleted one too.

    Raises:
        SlackError: ``file_not_found``.
    """
    file = state.files.get(file_id)
    if file is None:
        raise SlackError("file_not_found")
    channels = tuple(c for c in state.channels_of_file(file_id) if _is_visible(c, app))
    if not channels and not file.is_deleted:
        raise SlackError("file_not_found")
    return ReadableFile(file, channels)


def _is_visible(channel: Channel, app: AppConfig) -> bool:
    return app.bot_user_id in channel.members or not (channel.is_private or channel.is_im)
