"""How long the edges wait, and how often they call: arguments, so that a test need not wait as long."""

from dataclasses import dataclass

from bot.domain.jobs.poll_pace import HOLD_BACK
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits
from bot.jobs.settings import DEFAULT_PAUSE
from bot.slack.receiving.transports.socket_mode_connection import PING_INTERVAL
from bot.slack.sending.web_api import CALL_SECONDS


@dataclass(frozen=True)
class EdgeTimings:
    """Times are in seconds.

    Attributes:
        slack_call: How long a call to Slack may take.
        slack_ping: How often a Socket Mode connection is pinged.
        job_api_pause: How long a project is left alone where the job API is too busy and names no time.
        slack_limits: How often Slack may be called.
        hold_back: How long a line about what a job begins waits for the job's end, which then is all that is posted.
    """

    slack_call: float = CALL_SECONDS
    slack_ping: float = PING_INTERVAL
    job_api_pause: float = DEFAULT_PAUSE
    slack_limits: SlackLimits = SLACK_LIMITS
    hold_back: float = HOLD_BACK
