"""Changes foreign text so that a code host notifies nobody, links nothing and closes nothing. Pure.

An invisible character splits what would act: GitHub looks for "@name" and "#123" in what was rendered, so no
escape of Markdown hides them. Renovate and others that quote foreign text do the same.
"""

import re

from bot.runtime.text import without_misleading

BREAK = "\u200b"
"""ZERO WIDTH SPACE."""
_ACTS = re.compile(
    r"(?<![A-Za-z0-9])@"  # a person or a team; in an address for mail, a letter stands before it
    r"|\#(?=\d)"  # an issue, with or without the name of a repository before it
    r"|[Gg][Hh]-(?=\d)",  # the same
    re.VERBOSE,
)
_PUBLIC_HOST = re.compile(r"https?://(?:www\.)?github\.com(?=/)", re.IGNORECASE)
_REDIRECTING = "https://redirect.github.com"
"""GitHub's own: leads to the same page, but leaves no trace there."""
_ISSUE_PATH = re.compile(r"/(?:issues|pull|discussions)/(?=\d)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def without_references(text: str) -> str:
    """Returns a text that reads the same. Links to github.com go through its redirecting host."""
    shown = _CONTROL.sub("", without_misleading(text.replace("\r\n", "\n")))
    parted = _ACTS.sub(lambda match: match[0] + BREAK, shown)
    return _PUBLIC_HOST.sub(_REDIRECTING, parted)


def without_issue_links(text: str) -> str:
    """Splits links to issues and discussions, so that they lead nowhere: for hosts without a redirecting address."""
    return _ISSUE_PATH.sub(lambda match: match[0] + BREAK, text)
