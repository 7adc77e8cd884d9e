"""Words with gaps, `{name}` each."""

from dataclasses import dataclass

from bot.slack.rendering.text import Markup


@dataclass(frozen=True)
class Template:
    """Words in Slack's markup: by its type, whatever goes into a gap is escaped already."""

    words: str

    def __call__(self, **given: Markup | int) -> Markup:
        """Returns the words with their gaps filled; what is given beyond that is left out."""
        return Markup(self.words.format_map(given))


@dataclass(frozen=True)
class PlainTemplate:
    """Words for labels, hints, and errors at an input: Slack shows these as they are, so nothing is escaped there."""

    words: str

    def __call__(self, **given: str | int) -> str:
        """See Template."""
        return self.words.format_map(given)
