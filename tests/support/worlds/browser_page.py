"""A person at the workspace's page in a real browser, with a record of everything that the page must not do."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Locator, Page, Playwright, Request, async_playwright, expect

ANA, BEN, GIA, EMIL = "U0ANA0001", "U0BEN0001", "U0GIA0001", "U0EMIL001"
DOCS, GENERAL, LEADS = "C0DOCS001", "C0GENERAL", "C0LEADS01"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


INSTALLED = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Programs to look for, the best first: the headless shell opens a page with half the CPU time."""


class NoChromium(Exception):
    """Raised where no Chromium is installed; its words say how to get one."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A headless Chromium: the system's, else the one that Playwright downloaded.

    Raises:
        NoChromium: There is neither.
    """
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_executable(playwright), args=QUIET)
        yield browser
        await browser.close()


def _executable(playwright: Playwright) -> str:
    found = next(filter(None, map(shutil.which, INSTALLED)), playwright.chromium.executable_path)
    if not Path(found).exists():
        raise NoChromium("no Chromium: install the package `chromium-headless-shell`, or run `playwright install`")
    return found


async def violations(page: Page) -> list[str]:
    """Returns what axe finds on a page, also by a rule that it has but does not apply by itself."""
    await page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    check = "async (rules) => (await axe.run({ resultTypes: ['violations'], rules })).violations"
    found = await page.evaluate(check, {"label-content-name-mismatch": {"enabled": True}})
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@dataclass
class WorkspaceTabs:
    """Opens tabs of the workspace's page, each as one person.

    ``faults`` collects console errors, exceptions, dialogs and requests to any other address.
    """

    context: BrowserContext
    origin: str
    faults: list[str] = field(default_factory=list)

    async def open(self, person: str, channel: str = "", *, width: int = 1280, height: int = 800) -> Page:
        page = await self.context.new_page()
        await page.set_viewport_size({"width": width, "height": height})
        page.on("console", lambda message: self._note_console(message.type, message.text))
        page.on("pageerror", lambda error: self.faults.append(f"thrown: {error}"))
        page.on("request", self._note_request)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        await page.goto(f"{self.origin}/#as={person}&channel={channel}")
        await expect(page.locator(f"[data-ready={person}]")).to_be_attached()
        return page

    def _note_console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.faults.append(f"{kind}: {text}")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:")):
            self.faults.append(f"request: {request.url}")


def messages(page: Page) -> Locator:
    return page.get_by_test_id("messages").get_by_test_id("message")


def replies(page: Page) -> Locator:
    return page.get_by_test_id("thread-messages").get_by_test_id("message")


async def write(page: Page, text: str, where: str = "composer") -> None:
    await page.get_by_test_id(where).fill(text)
    await page.get_by_test_id(where).press("Enter")
