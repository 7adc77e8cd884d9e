"""Answers what no listener needs to see: Slack's checks, notes about its deliveries, payloads that are not for us."""

import logging
from datetime import UTC, datetime

from slack_bolt.response import BoltResponse

from bot.slack.receiving.first_occurrences import FirstOccurrences
from bot.slack.receiving.payloads.payload import SlackPayload, log_safe
from bot.slack.rendering.words.at_once import OTHER_INSTALLATION
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)


class PayloadFilter:
    """Passes on only payloads for our app in our workspace."""

    def __init__(self, identity: Identity, first_occurrences: FirstOccurrences) -> None:
        self._identity = identity
        self._first_occurrences = first_occurrences

    def early_response(self, payload: SlackPayload) -> BoltResponse | None:
        """Returns the response to a payload that no listener gets to see; None to let it through."""
        if payload.type == "url_verification":
            return None  # Bolt knows the answer, and it names no workspace
        if is_ssl_check(payload):
            return BoltResponse(status=200, body="")
        if not payload.is_for(self._identity):
            self._log_other_installation(payload)
            return BoltResponse(status=200, body=OTHER_INSTALLATION if payload.command else "")
        if payload.type == "app_rate_limited":
            _log_events_held_back(payload)
            return BoltResponse(status=200, body="")
        return None

    def _log_other_installation(self, payload: SlackPayload) -> None:
        authorized = payload.authorizations[0].team_id if payload.authorizations else ""
        team_id = authorized or payload.team_id or (payload.team.id if payload.team else "")
        where = f"workspace {log_safe(team_id) or 'not named'}, app {log_safe(payload.api_app_id) or 'not named'}"
        if self._first_occurrences.is_first(where):
            logger.warning(
                "requests of another workspace or app start nothing: %s; this is workspace %s, app %s",
                where,
                self._identity.team_id,
                self._identity.app_id or "not known",
            )


def is_ssl_check(payload: SlackPayload) -> bool:
    """Returns whether Slack only checks the address's certificate (docs.slack.dev, slash commands)."""
    return payload.ssl_check == "1"


def _log_events_held_back(payload: SlackPayload) -> None:
    """Slack delivers at most 30,000 events an hour (docs.slack.dev, `app_rate_limited`)."""
    try:
        minute = datetime.fromtimestamp(payload.minute_rate_limited, UTC)
    except (ValueError, OSError, OverflowError):
        minute = datetime.fromtimestamp(0, UTC)
    logger.error(
        "Slack holds events back since %s UTC: replies of that time are missing, please write them again. It does so "
        "beyond 30,000 events an hour, or where too many were not acknowledged",
        minute.strftime("%Y-%m-%d %H:%M"),
    )
