"""Which messages hold nothing but emoji: people cheer with them, and no agent has anything to do.

Source: docs.slack.dev, "Formatting message text": emoji come as `:tada:`, with a skin tone as `:wave::skin-tone-2:`;
those that somebody's keyboard typed can come as the characters themselves (unicode.org, emoji-data.txt).
"""

import re

_EMOJI = re.compile(
    r":[\w+\-]++:"
    r"|[0-9#*]\ufe0f?\u20e3"
    "|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff]"
    "|[\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]"
    r"|\s"
)


def without_emoji(words: str) -> str:
    """Returns a text with a blank where each emoji was."""
    return _EMOJI.sub(" ", words)


def is_only_emoji(words: str) -> bool:
    """Returns whether a text is made of emoji alone."""
    return bool(words.strip()) and not _EMOJI.sub("", words)
