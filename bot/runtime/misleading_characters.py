"""Characters that nobody sees, but that change what is read: they reorder the text around them, or hide in it.

Source: Unicode Technical Report 36 and "Trojan Source" (CVE-2021-42574) for what reorders. Of what is invisible, the
joiners and variation selectors stay, since scripts and emoji are written with them.
"""

import re

MISLEADING = re.compile(
    "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder
    "\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # hide
    "\U000e0000-\U000e007f]"  # tags: a whole text can hide in them
)


def without_misleading(text: str) -> str:
    """The text as it looks."""
    return MISLEADING.sub("", text)
