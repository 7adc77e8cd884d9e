"""What is answered before any listener sees it: Slack's checks, news of deliveries, requests that are not for us."""

import logging
from datetime import UTC, datetime
from typing import Any

from slack_bolt.response import BoltResponse

from bot.runtime.json_fields import first_item_at, text_at
from bot.slack.receiving.first_occurrences import FirstOccurrences
from bot.slack.receiving.payloads.actors import is_for_our_app
from bot.slack.receiving.payloads.fields import log_safe
from bot.slack.rendering.words.at_once import OTHER_INSTALLATION
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)


class PayloadFilter:
    """Lets payloads through to the listeners that are for our app in our workspace."""

    def __init__(self, identity: Identity, first_occurrences: FirstOccurrences) -> None:
        self._identity = identity
        self._first_occurrences = first_occurrences

    def early_response(self, body: dict[str, Any]) -> BoltResponse | None:
        """Returns the response to what no listener gets to see; None for what is let through."""
        if text_at(body, "type") == "url_verification":
            return None  # Bolt knows the answer, and it names no workspace
        if is_ssl_check(body):
            return BoltResponse(status=200, body="")
        if not is_for_our_app(body, self._identity):
            self._log_other_installation(body)
            return BoltResponse(status=200, body=OTHER_INSTALLATION if text_at(body, "command") else "")
        if text_at(body, "type") == "app_rate_limited":
            _log_events_held_back(body)
            return BoltResponse(status=200, body="")
        return None

    def _log_other_installation(self, body: dict[str, Any]) -> None:
        team_id = (
            text_at(first_item_at(body, "authorizations"), "team_id")
            or text_at(body, "team_id")
            or text_at(body, "team", "id")
        )
        app_id = text_at(body, "api_app_id")
        where = f"workspace {log_safe(team_id) or 'not named'}, app {log_safe(app_id) or 'not named'}"
        if self._first_occurrences.is_first(where):
            logger.warning(
                "requests of another workspace or app start nothing: %s; this is workspace %s, app %s",
                where,
                self._identity.team_id,
                self._identity.app_id or "not known",
            )


def is_ssl_check(body: dict[str, Any]) -> bool:
    """Returns whether Slack only looks if the address has a good certificate (docs.slack.dev, slash commands)."""
    return text_at(body, "ssl_check") == "1"


def _log_events_held_back(body: dict[str, Any]) -> None:
    """Slack delivers at most 30,000 events an hour (docs.slack.dev, `app_rate_limited`)."""
    since = body.get("minute_rate_limited")
    try:
        minute = datetime.fromtimestamp(since if isinstance(since, int) else 0, UTC)
    except (ValueError, OSError, OverflowError):
        minute = datetime.fromtimestamp(0, UTC)
    logger.error(
        "Slack holds events back since %s UTC: replies of that time are missing, please write them again. It does so "
        "beyond 30,000 events an hour, or where too many were not acknowledged",
        minute.strftime("%Y-%m-%d %H:%M"),
    )
