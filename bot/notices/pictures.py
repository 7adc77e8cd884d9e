"""The post with the pictures of a pull request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bot.notices.notice import NoticeContent, NoticeKey
from bot.notices.said import Markup, Renderer, Said, joined

if TYPE_CHECKING:
    from bot.domain.threads.thread import Thread  # whose state contains a notice

NAMED = 4
"""Pictures that are named; all are counted."""
_LONGEST = 150
_LONGEST_LINK, _LONGEST_PULL_REQUEST = 300, 1_000
"""All of it fits into one paragraph in Slack."""


@dataclass(frozen=True)
class PagePicture:
    """A picture of a page. `shown`: as a picture, for which it needs a `file`, its id once it is uploaded to Slack.
    Otherwise only its path and the page's words for it are, with the `link` to it.
    """

    id: str
    path: str
    alt: str = ""
    shown: bool = False
    file: str = ""
    link: str = ""


@dataclass(frozen=True)
class PicturesShown(NoticeContent, kind="pictures_shown"):
    """Pictures that the pull request at `link` adds or changes: the first of `count`."""

    words: ClassVar = "New or changed pictures in the pull request: {link}"
    link: str
    pictures: tuple[PagePicture, ...]
    count: int

    @property
    def to_upload(self) -> bool:
        """Whether it cannot be posted yet."""
        return any(each.shown and not each.file for each in self.pictures)

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """Names them all, for where none can be shown."""
        return Said(self.words_beside(show, ()))

    def words_beside(self, show: Renderer, shown: Sequence[PagePicture]) -> Markup:
        """Names the pictures that are not shown beside these words."""
        named = [each for each in self.pictures if each not in shown][:NAMED]
        lines = [_named(show, each) for each in named]
        left = self.count - len(named) - len(shown)
        more = [show("• and {count} more", count=left)] if left > 0 else []
        return joined([show(self.words, link=show.link(self.link, _LONGEST_PULL_REQUEST)), *lines, *more], "\n")

    @staticmethod
    def key(digest: str) -> NoticeKey:
        """Told once for the same pictures."""
        return NoticeKey(f"pictures/{digest}")


def _named(show: Renderer, picture: PagePicture) -> Markup:
    words = "• {name}: {link}" if picture.link else "• {name}"
    return show(words, name=show.line(name_of(picture), _LONGEST), link=show.link(picture.link, _LONGEST_LINK))


def name_of(picture: PagePicture) -> str:
    """Returns what a reader is told of a picture."""
    return f"{picture.alt} ({picture.path})" if picture.alt else picture.path
