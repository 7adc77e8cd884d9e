"""Texts with placeholders, such as `{name}`."""

from dataclasses import dataclass

from bot.notices.said import Markup


@dataclass(frozen=True)
class Template:
    """A text in Slack's markup. Its type ensures that the values for its placeholders are already escaped."""

    words: str

    def __call__(self, **given: Markup | int) -> Markup:
        """Returns the text with its placeholders filled in; surplus values are ignored."""
        return Markup(self.words.format_map(given))


@dataclass(frozen=True)
class PlainTemplate:
    """A text for labels, hints and errors, which Slack shows without markup, so nothing is escaped."""

    words: str

    def __call__(self, **given: str | int) -> str:
        """See Template."""
        return self.words.format_map(given)
