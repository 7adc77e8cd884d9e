"""A pull request's description as its page shows it."""

from dataclasses import dataclass

from markupsafe import Markup

from bot.jobserver.pages.diff import visible
from bot.jobserver.pages.markdown import Page
from bot.jobserver.pages.page_renderer import PageRenderer

_LONGEST = 50_000
TIME_LIMIT_S = 3.0


@dataclass(frozen=True)
class Description:
    """Either as safe HTML, or as text where it is too long to be rendered, or takes too long. The rest is `hidden`."""

    html: Markup | None
    text: str
    hidden: int


async def shown_description(description: str, number: int, renderer: PageRenderer) -> Description:
    """Returns the description of a pull request, which is Markdown of people and agents."""
    text = visible(description[:_LONGEST])
    page = Page(text, "", f"/pulls/{number}/after/")
    html = None if len(description) > _LONGEST else (await renderer.render([page])).get(page)
    # Markup: `markdown` made it, and lets nothing of the author's through unescaped.
    return Description(None if html is None else Markup(html), text, max(0, len(description) - _LONGEST))  # noqa: S704
