"""One Web API call being answered: its arguments, and what the method needs to answer it."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.workspace.app_config import AppConfig
from bot.workspace.arguments import Arguments
from bot.workspace.errors import SlackError
from bot.workspace.events import family
from bot.workspace.models import Channel, Json
from bot.workspace.rendering import Rendering
from bot.workspace.state import State


@dataclass(frozen=True)
class Call:
    """What a method's handler is given."""

    state: State
    app: AppConfig
    rendering: Rendering
    arguments: Arguments
    origin: str
    open_socket_url: Callable[[], str]

    @property
    def bot(self) -> str:
        return self.app.bot_user_id

    def channel(self, name: str = "channel") -> Channel:
        """The channel named by id in an argument, if the bot may know of it.

        Raises:
            SlackError: ``channel_not_found``, for private channels without the bot too.
        """
        return self.visible(self.state.channels.get(self.arguments.required(name)))

    def visible(self, channel: Channel | None) -> Channel:
        if channel is None or ((channel.is_private or channel.is_im) and self.bot not in channel.members):
            raise SlackError("channel_not_found")
        return channel

    def joined(self, channel: Channel) -> Channel:
        if self.bot not in channel.members:
            raise SlackError("not_in_channel")
        return channel

    def need(self, scope: str) -> None:
        """Refuse without the scope, naming it and those there are, as Slack does."""
        if scope not in self.app.scopes:
            provided = ",".join(sorted(self.app.scopes))
            raise SlackError("missing_scope", detail={"needed": scope, "provided": provided})

    def need_for(self, channel: Channel, right: str) -> None:
        """The scope for a right (``read`` or ``history``) on this kind of conversation."""
        self.need(f"{family(channel)}:{right}")


@dataclass(frozen=True)
class Method:
    """A Web API method: what answers it, the scope it always needs, and whose token it takes."""

    answer: Callable[[Call], Json]
    scope: str | None = None
    app_token: bool = False
    per_minute: int = 50
