"""Texts and modals on the workspace's page, in a real browser: Slack's formats work, and hostile text is harmless."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.browser_page import ANA, DOCS, LEADS, WorkspaceTabs, messages
from support.worlds.modal_samples import PROMPT, TITLE, WHOLE, modal, plain

from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
CHOSEN = "(node) => node.selectedOptions[0].label"


class Heard:
    """The payloads that the app received about its modals, in order."""

    def __init__(self, app: AsyncApp, view: Json, *, answer: Callable[[Json], Json] = lambda _: {}) -> None:
        self.bodies: asyncio.Queue[Json] = asyncio.Queue()
        self.view_id = ""
        self._view = view
        self._answer = answer
        app.shortcut("new_task")(self._open)
        app.action("prompt")(self._note)
        app.action("more")(self._note)
        app.view("task")(self._submitted)
        app.view_closed("task")(self._note)

    async def _open(self, ack: Any, body: Json, client: AsyncWebClient) -> None:
        await ack()
        opened = await client.views_open(trigger_id=body["trigger_id"], view=self._view)
        self.view_id = opened["view"]["id"]

    async def _note(self, ack: Any, body: Json) -> None:
        await ack()
        self.bodies.put_nowait(body)

    async def _submitted(self, ack: Any, body: Json) -> None:
        self.bodies.put_nowait(body)
        await ack(**self._answer(body))

    async def next(self) -> Json:
        async with asyncio.timeout(10):
            return await self.bodies.get()


async def open_modal(page: Page) -> Locator:
    """Runs the composer's shortcut and returns the modal that the app opens."""
    await page.get_by_role("button", name="Shortcuts").first.click()
    await page.get_by_role("menuitem", name="New task").click()
    shown = page.locator("dialog[open]")
    await expect(shown).to_be_visible()
    return shown


@pytest.mark.full
async def test_everything_entered_reaches_the_app(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """From each kind of input. The open conversation is chosen from the start."""
    heard = Heard(app, WHOLE)
    page = await tabs.open(ANA, LEADS)
    shown = await open_modal(page)
    await expect(shown.get_by_role("heading", name="New task")).to_be_visible()
    await expect(shown.locator("strong")).to_have_text("Hand over")
    await expect(shown.get_by_label("What to do")).to_be_focused()
    await page.keyboard.type("Fix <b>it</b>")
    await shown.get_by_label("Title").fill("One line")
    await shown.get_by_label("Project").select_option(label="Handbook")
    assert await shown.get_by_label("Where").evaluate(CHOSEN) == "#leads"
    await shown.get_by_label("Not at all").check()
    await shown.get_by_label("Quietly").check()
    await shown.get_by_label("With the thread").check()
    await shown.get_by_role("button", name="Start").click()
    values = (await heard.next())["view"]["state"]["values"]
    assert values["prompt"]["prompt"]["value"] == "Fix <b>it</b>"
    assert values["title"]["title"]["value"] == "One line"
    assert values["project"]["project"]["selected_option"]["value"] == "book"
    assert values["place"]["place"]["selected_conversation"] == LEADS
    assert values["tell"]["tell"]["selected_option"]["value"] == "no"
    assert [each["value"] for each in values["extras"]["extras"]["selected_options"]] == ["quiet", "thread"]
    await expect(shown).to_have_count(0)
    await expect(page.get_by_role("button", name="Shortcuts").first).to_be_focused()


@pytest.mark.full
async def test_errors_are_shown_at_their_fields_and_nothing_is_lost(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """The page's own errors come before it asks the app. An error from the app focuses its field."""
    wrong = {"response_action": "errors", "errors": {"prompt": "Say which <page>."}}
    heard = Heard(app, modal(TITLE, PROMPT), answer=lambda body: wrong if value_of(body, "prompt") == "vague" else {})
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    prompt = shown.get_by_label("What to do")
    await shown.get_by_role("button", name="Start").click()
    await expect(prompt).to_have_attribute("aria-invalid", "true")
    await expect(prompt).to_have_accessible_description("Please complete this required field.")
    await prompt.fill("x" * 42)
    await expect(shown.get_by_text("2 too many")).to_be_visible()
    await shown.get_by_role("button", name="Start").click()
    await expect(prompt).to_have_accessible_description("This is 2 characters too long.")
    await expect(prompt).to_have_value("x" * 42)
    await shown.get_by_label("Title").fill("Kept")
    await prompt.fill("vague")
    await prompt.press("Control+Enter")
    await expect(prompt).to_have_accessible_description("Say which <page>.")
    await expect(prompt).to_be_focused()
    await expect(shown.get_by_label("Title")).to_have_value("Kept")
    await prompt.fill("page 3")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    assert [value_of(await heard.next(), "prompt") for _ in range(2)] == ["vague", "page 3"]


def value_of(body: Json, block_id: str) -> str | None:
    value: str | None = body["view"]["state"]["values"][block_id][block_id]["value"]
    return value


@pytest.mark.full
async def test_an_update_keeps_what_is_being_typed(tabs: WorkspaceTabs, app: AsyncApp, slack: AsyncWebClient) -> None:
    """Even if the app changes that block while somebody types in the middle of a line."""
    heard = Heard(app, modal(PROMPT))
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    prompt = shown.get_by_label("What to do")
    await prompt.fill("one three")
    await prompt.evaluate("(node) => node.setSelectionRange(4, 4)")
    alert = {"type": "section", "text": {"type": "mrkdwn", "text": "A line more"}}
    changed = PROMPT | {"label": plain("What exactly to do")}
    await slack.views_update(view_id=heard.view_id, view=modal(alert, changed, title="Changed"))
    await expect(shown.get_by_role("heading")).to_have_text("Changed")
    await expect(shown.get_by_label("What exactly to do")).to_be_focused()
    await page.keyboard.type("two ")
    await expect(shown.get_by_label("What exactly to do")).to_have_value("one two three")
    await shown.get_by_role("button", name="Start").click()
    assert value_of(await heard.next(), "prompt") == "one two three"


RENDER = """async ([text, object]) => {
  const { mrkdwn, textObject } = await import("/page/static/text/inline.js");
  const people = { U1: { name: "ana" } };
  const docs = { id: "C1", name: "docs" };
  const view = {
    me: { id: "U1" },
    person: (id) => people[id],
    channel: (id) => (id === "C1" ? docs : undefined),
    channelNamed: (name) => (name === "docs" ? docs : undefined),
    href: () => "#c1",
  };
  const box = document.createElement("div");
  box.append(...(object ? textObject({ text, ...object }, view) : mrkdwn(text, view)));
  for (const node of box.querySelectorAll("*")) {
    for (const name of ["class", "title", "target", "rel", "tabindex", "dir", "role"]) node.removeAttribute(name);
  }
  box.querySelectorAll("bdi").forEach((node) => node.replaceWith(...node.childNodes));
  return box.innerHTML;
}"""
MRKDWN = [
    ("a *b* _c_ ~d~ `e*f*`", "a <strong>b</strong> <em>c</em> <s>d</s> <code>e*f*</code>"),
    ("*bold _and italic_*", "<strong>bold <em>and italic</em></strong>"),
    ("2*3*4 snake_case_name * not *", "2*3*4 snake_case_name * not *"),
    ("*see `a*b` now*", "<strong>see <code>a*b</code> now</strong>"),
    ("*one\ntwo*", "*one\ntwo*"),
    ("&lt;b&gt; &amp;lt; &quot;", "&lt;b&gt; &amp;lt; &amp;quot;"),
    ("&gt; one\n&gt; two\nthree", "<blockquote>one\ntwo</blockquote>three"),
    ("x ```a\n *b* &lt;``` y", "x <pre>a\n *b* &lt;</pre> y"),
    ("<@U1> <@U9|left> <#C1|docs>", '<span>@ana</span> <span>@left</span> <a href="#c1">#docs</a>'),
    ("<!here> <!date^0^{nope}|then>", '<span data-broadcast="here">@here</span> <time>then</time>'),
    ("<!date^0^day {date_num}|then>", "<time>day 1970-01-01</time>"),
    (":no_such_thing: 10:30:00", "<span>:no_such_thing:</span> 10<span>:30:</span>00"),
    ("<https://a.test/?x=1&amp;y=2|the *label*>", '<a href="https://a.test/?x=1&amp;y=2">the *label*</a>'),
    ("see https://a.test/b_c_d.", 'see <a href="https://a.test/b_c_d">https://a.test/b_c_d</a>.'),
    ("<mailto:a@b.test|mail>", '<a href="mailto:a@b.test">mail</a>'),
    ("<javascript:alert(1)|click>", "<span>click</span>"),
    ("<JaVaScRiPt:alert(1)>", "<span>JaVaScRiPt:alert(1)</span>"),
    ("<data:text/html,x|click>", "<span>click</span>"),
    ("<script>alert(1)</script>", "<span>script</span>alert(1)<span>/script</span>"),
    ("*_~`<*_~`<", "*_~<code>&lt;*_~</code>&lt;"),
    ("@here #docs", "@here #docs"),
]


async def test_mrkdwn_is_rendered(tabs: WorkspaceTabs) -> None:
    page = await tabs.open(ANA)
    assert [(text, await page.evaluate(RENDER, [text, None])) for text, _ in MRKDWN] == MRKDWN


OBJECTS = [
    ("@here #docs", {"type": "mrkdwn"}, '<span data-broadcast="here">@here</span> <a href="#c1">#docs</a>'),
    ("@here #docs https://a.test", {"type": "mrkdwn", "verbatim": True}, "@here #docs https://a.test"),
    ("*a* <!here> &lt;", {"type": "plain_text"}, "*a* &lt;!here&gt; &amp;lt;"),
    (":a_b:", {"type": "plain_text", "emoji": False}, ":a_b:"),
]


@pytest.mark.full
async def test_text_objects_are_rendered(tabs: WorkspaceTabs) -> None:
    page = await tabs.open(ANA)
    assert [(text, kind, await page.evaluate(RENDER, [text, kind])) for text, kind, _ in OBJECTS] == OBJECTS


HOSTILE = [
    "<img src=x onerror=alert(1)> <b onmouseover=alert(1)>x</b>",
    "\u202eevil\u202c zero\u200bwidth\ufeff \u0000 \ud83d\ude00",
    "*" * 40_000,
    "<" * 40_000,
    "`_*~" * 10_000,
    "*a _b ~c " * 4_400,
    "https://a.test/" + "." * 39_000,
    ":" * 40_000,
    "```" * 13_001,
    "[" * 12_000,
    "\n&gt; " * 5_000,
]


@pytest.mark.full
async def test_hostile_text_stays_text(tabs: WorkspaceTabs) -> None:
    page = await tabs.open(ANA)
    for text in HOSTILE:
        for kind in (None, {"type": "mrkdwn"}, {"type": "plain_text"}):
            html = await page.evaluate(RENDER, [text, kind])
            assert "<img" not in html
            assert "<b " not in html


async def test_hostile_messages_stay_messages(
    tabs: WorkspaceTabs, workspace: WorkspaceServer, slack: AsyncWebClient
) -> None:
    markup = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": markup}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "<javascript:alert(1)|click> " + "*a " * 900}},
        {"type": "markdown", "text": f"# {markup}\n[x](javascript:alert(1)) [y](https://a.test) **b** `{markup}`"},
        {
            "type": "plan",
            "title": markup,
            "tasks": [{"type": "task_card", "task_id": "x", "title": markup, "status": "error"}],
        },
        {
            "type": "card",
            "title": {"type": "mrkdwn", "text": markup},
            "body": {"type": "mrkdwn", "text": markup},
            "actions": [{"type": "button", "text": plain(markup[:70]), "action_id": "press"}],
        },
    ]
    await slack.chat_postMessage(channel=DOCS, text="blocks", blocks=json.loads(json.dumps(blocks)))
    await workspace.people["ben"].say("docs", markup + "\n" + "x *y* " * 5_000)
    page = await tabs.open(ANA, DOCS)
    await expect(messages(page)).to_have_count(2)
    row = messages(page).first
    await expect(row.locator(".header-block")).to_have_text(markup)
    await expect(row.locator(".md-heading")).to_have_text(markup)
    await expect(row).to_contain_text(f"Failed: {markup}")
    await expect(row.locator("script, img, [onerror]")).to_have_count(0)
    hrefs = await row.locator("a").evaluate_all("(all) => all.map((a) => a.href)")
    assert hrefs == ["https://a.test/"]
    await expect(messages(page).last.get_by_role("button", name="Show the whole message")).to_be_visible()
