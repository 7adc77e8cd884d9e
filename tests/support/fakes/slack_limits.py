"""A Slack that lets anything be called as often as a test likes; what it refuses it still wants to wait."""

from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackLimits

_ANY_NUMBER = Limit(6_000_000, 10_000)
ANY_NUMBER = SlackLimits(
    dict.fromkeys(SLACK_LIMITS.methods, _ANY_NUMBER), dict.fromkeys(SLACK_LIMITS.channel, _ANY_NUMBER)
)
