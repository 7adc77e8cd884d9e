"""Web API methods: the context of their calls, and the tokens that they take."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from bot.workspace.model.app_config import AppConfig, AppManifests
from bot.workspace.model.entities import Channel, Json, SlackError
from bot.workspace.model.state import State
from bot.workspace.model.views import OpenViews, Triggers
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.rendering import Renderer


class TokenKind(Enum):
    """What a token is for."""

    BOT = auto()
    """The Web API, within the scopes that were granted."""
    APP = auto()
    """The whole app: opening Socket Mode connections."""
    CONFIGURATION = auto()
    """A person's: reading and changing the manifests of their apps."""


@dataclass
class Credentials:
    """The app's tokens and secrets. Random by default.

    Args:
        bot_token: For the Web API.
        app_token: For ``apps.connections.open``.
        configuration_token: For ``apps.manifest.*``.
        signing_secret: Signs requests to the app's request URLs.
        refusal: Slack's error code for every call after the tokens were revoked.
        removed_scopes: The scopes of the app that are no longer granted.
    """

    bot_token: str = field(default_factory=lambda: f"xoxb-{secrets.token_hex(24)}", repr=False)
    app_token: str = field(default_factory=lambda: f"xapp-1-{secrets.token_hex(24)}", repr=False)
    configuration_token: str = field(default_factory=lambda: f"xoxe.xoxp-1-{secrets.token_hex(24)}", repr=False)
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    refusal: str | None = None
    removed_scopes: frozenset[str] = frozenset()

    def check(self, token: str, kind: TokenKind = TokenKind.BOT) -> None:
        """Checks a token.

        Raises:
            SlackError: The token is missing, wrong, revoked or of the wrong type.
        """
        if not token:
            raise SlackError("not_authed")
        own = {self.bot_token: TokenKind.BOT, self.app_token: TokenKind.APP}
        found = (own | {self.configuration_token: TokenKind.CONFIGURATION}).get(token)
        if found is None:
            raise SlackError("invalid_auth")
        if self.refusal and found is not TokenKind.CONFIGURATION:
            raise SlackError(self.refusal)
        if found is not kind:
            raise SlackError("not_allowed_token_type")

    def revoke(self, code: str = "token_revoked") -> None:
        """Refuses the app's tokens from now on, with a code such as ``token_revoked`` or ``account_inactive``."""
        self.refusal = code

    def remove_scopes(self, *names: str) -> None:
        """Takes granted scopes away, as somebody can on the app's page."""
        self.removed_scopes |= set(names)

    def reinstall(self) -> None:
        """Accepts the app's tokens, and grants all scopes that it asks for."""
        self.refusal, self.removed_scopes = None, frozenset()

    def granted(self, asked_for: Iterable[str]) -> frozenset[str]:
        """Returns which of the scopes that the app asks for are granted."""
        return frozenset(asked_for) - self.removed_scopes


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
