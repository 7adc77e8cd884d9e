"""Front matter that the change made unreadable."""

from collections.abc import Iterator

from bot.jobserver.checks.change import Change

NAME = "front matter"


def unreadable_front_matter(change: Change) -> Iterator[str]:
    for path in change.changed_pages:
        page, before = change.page(path), change.page_before(path)
        was_readable = not (before and before.front_matter and before.front_matter.error)
        if page and page.front_matter and page.front_matter.error and was_readable:
            yield f"{path}: its front matter cannot be read: {page.front_matter.error}"
