"""The app's tokens and secrets."""

import secrets
from dataclasses import dataclass, field

from bot.workspace.model.errors import SlackError


@dataclass
class Credentials:
    """The app's tokens and secrets. Random by default.

    Args:
        bot_token: For the Web API.
        app_token: For ``apps.connections.open``.
        signing_secret: Signs requests to the app's request URLs.
        verification_token: Part of every payload; only old apps check it.
        refusal: Slack's error code for every call after the tokens were revoked.
    """

    bot_token: str = field(default_factory=lambda: f"xoxb-{secrets.token_hex(24)}", repr=False)
    app_token: str = field(default_factory=lambda: f"xapp-1-{secrets.token_hex(24)}", repr=False)
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    verification_token: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)
    refusal: str | None = None

    def check(self, token: str, *, app_token: bool) -> None:
        """Checks a token.

        Raises:
            SlackError: The token is missing, wrong, revoked or of the wrong type.
        """
        if not token:
            raise SlackError("not_authed")
        if token not in {self.bot_token, self.app_token}:
            raise SlackError("invalid_auth")
        if self.refusal:
            raise SlackError(self.refusal)
        if (token == self.app_token) != app_token:
            raise SlackError("not_allowed_token_type")

    def revoke(self, code: str = "token_revoked") -> None:
        """Refuses the app's tokens from now on, with a code such as ``token_revoked`` or ``account_inactive``."""
        self.refusal = code

    def restore(self) -> None:
        """Accepts the app's tokens again."""
        self.refusal = None
