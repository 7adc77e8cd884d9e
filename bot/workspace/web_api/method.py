"""Web API methods and the context of their calls."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.manifests import AppManifests
from bot.workspace.model.state import State
from bot.workspace.model.triggers import Triggers
from bot.workspace.model.views import OpenViews
from bot.workspace.web_api.credentials import TokenKind
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.rendering import Renderer


@dataclass(frozen=True)
class MethodCall:
    """A call: its arguments, and what a method needs to answer it. `app` has the granted scopes, and its manifest in
    `manifests` those that it requests.
    """

    state: State
    app: AppConfig
    manifests: AppManifests
    renderer: Renderer
    views: OpenViews
    triggers: Triggers
    arguments: Arguments
    origin: str
    open_socket_url: Callable[[], str]

    @property
    def bot_user_id(self) -> str:
        return self.app.bot_user_id

    def channel(self, name: str = "channel") -> Channel:
        """Returns the channel whose id is in an argument, if the bot can see it.

        Raises:
            SlackError: ``channel_not_found``, also for private channels without the bot.
        """
        return self.require_visible(self.state.channels.get(self.arguments.required(name)))

    def require_visible(self, channel: Channel | None) -> Channel:
        if channel is None or ((channel.is_private or channel.is_im) and self.bot_user_id not in channel.members):
            raise SlackError("channel_not_found")
        return channel

    def require_membership(self, channel: Channel) -> Channel:
        if self.bot_user_id not in channel.members:
            raise SlackError("not_in_channel")
        return channel

    def require_scope(self, scope: str) -> None:
        """Refuses a call without the scope, naming the needed and the granted scopes, as Slack does."""
        if scope not in self.app.scopes:
            provided = ",".join(sorted(self.app.scopes))
            raise SlackError("missing_scope", detail={"needed": scope, "provided": provided})

    def require_channel_scope(self, channel: Channel, right: str) -> None:
        """Refuses a call without the scope to ``read`` this kind of conversation or its ``history``."""
        self.require_scope(f"{channel.scope_family}:{right}")


@dataclass(frozen=True)
class Method:
    """A Web API method.

    Args:
        handler: Returns the answer to a call, without ``ok``.
        scope: The scope that it always needs, if any.
        token: Which kind of token it takes.
    """

    handler: Callable[[MethodCall], Json]
    scope: str | None = None
    token: TokenKind = TokenKind.BOT
