"""Pictures of the page for the README: with PAGEHAND_SCREENSHOTS=1, tests write them to the README's folder."""

import asyncio
import os
from pathlib import Path

from playwright.async_api import Page

TAKEN_FOR_README = os.environ.get("PAGEHAND_SCREENSHOTS") == "1"
PICTURES = Path(__file__).parents[3] / ".github"
MOST_BYTES = 400_000


async def take_picture(page: Page, path: Path, height: int) -> None:
    """Takes the page from its top, without the pointer over anything."""
    await page.mouse.move(0, 0)
    await page.set_viewport_size({"width": 1280, "height": height})
    await page.screenshot(path=path, animations="disabled", caret="hide")
    if TAKEN_FOR_README:
        taken = await asyncio.to_thread(path.stat)
        assert taken.st_size < MOST_BYTES, f"{path.name} is too large for a README: {taken.st_size:,} bytes"
