"""Slack's limits for tests: practically none, or all of them with a shortened minute."""

from bot.domain.slack_limits import MARGIN, MINUTE, SLACK_LIMITS, Limit, SlackLimits

_NO_TIME = 1e-9
ANY_NUMBER = SlackLimits(
    dict.fromkeys(SLACK_LIMITS.methods, Limit(100, _NO_TIME)), dict.fromkeys(SLACK_LIMITS.channel, Limit(1, _NO_TIME))
)
"""Any method may be called as often as a test likes; Slack's own 429s still count."""


def faster(limits: SlackLimits, pace: float) -> SlackLimits:
    """The same numbers of calls, in windows shortened by this factor; on their way, calls are no faster."""

    def each(limit: Limit) -> Limit:
        margin = MARGIN if limit.seconds >= MINUTE else 0.0
        return Limit(limit.calls, (limit.seconds - margin) / pace + margin)

    methods = {method: each(limit) for method, limit in limits.methods.items()}
    return SlackLimits(methods, {method: each(limit) for method, limit in limits.channel.items()})
