"""The app's tokens and secrets."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from bot.workspace.model.errors import SlackError


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
        found = self._kind_of(token)
        if found is None:
            raise SlackError("invalid_auth")
        if self.refusal and found is not TokenKind.CONFIGURATION:
            raise SlackError(self.refusal)
        if found is not kind:
            raise SlackError("not_allowed_token_type")

    def revoke(self, code: str = "token_revoked") -> None:
        """Refuses the app's tokens from now on, with a code such as ``token_revoked`` or ``account_inactive``."""
        self.refusal = code

    def restore(self) -> None:
        """Accepts the app's tokens again."""
        self.refusal = None

    def remove_scopes(self, *names: str) -> None:
        """Takes granted scopes away, as somebody can on the app's page."""
        self.removed_scopes |= set(names)

    def reinstall(self) -> None:
        """Grants all scopes that the app asks for."""
        self.removed_scopes = frozenset()

    def granted(self, asked_for: Iterable[str]) -> frozenset[str]:
        """Returns which of the scopes that the app asks for are granted."""
        return frozenset(asked_for) - self.removed_scopes

    def _kind_of(self, token: str) -> TokenKind | None:
        kinds = {
            self.bot_token: TokenKind.BOT,
            self.app_token: TokenKind.APP,
            self.configuration_token: TokenKind.CONFIGURATION,
        }
        return kinds.get(token)
