"""The card and the notices: harmless whatever people, agents and APIs wrote, and within Slack's limits."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.domain.models import Job, Known, Notice, NoticeKind, Thread, Trouble, What
from bot.slack.blocks import Message
from bot.slack.cards import card, state_line
from bot.slack.notices import messages
from bot.slack.text import escape, opening, pieces, quote, safe_url, shorten, width
from bot.slack.wording import Wording, help_text
from bot.workspace.blocks import checked_blocks

WORDING = Wording(command="/docs", admin="U0ADMIN", bot_user_id="U0BOT")
LINK = "https://git.example/team/guides/pull/7"


def thread(prompt: str = "Fix the guides", known: Known | None = None) -> Thread:
    return Thread(
        id="th1",
        team_id="T1",
        channel_id="C1",
        asker_id="U0ASKER",
        prompt=prompt,
        project_id="p",
        created_at=0.0,
        ts="1.000001",
        known=known or Known(),
    )


def job(status: str = "active", **facts: Any) -> Job:
    return Job(id="j1", status=status, **facts)


def say(what: What, prompt: str = "Fix it", *, plain: str = "", **facts: str) -> list[Message]:
    notice = Notice(
        id=1, key="k", thread_id="th1", kind=NoticeKind.POST, what=what, facts=facts, created_at=0.0, plain=bool(plain)
    )
    return messages(thread(prompt), notice, WORDING)


def said(what: What, **facts: str) -> str:
    return "\n".join(message.text for message in say(what, **facts))


def text_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") in {"mrkdwn", "plain_text"}:
            yield value
        for item in value.values():
            yield from text_objects(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from text_objects(item)


def assert_sendable(message: Message) -> None:
    """Slack takes it: its documented limits, our own bound on all blocks together, and no markup but our own."""
    checked_blocks([dict(block) for block in message.blocks])
    assert 0 < len(message.text) <= 4_000
    texts = [text for block in message.blocks for text in text_objects(block)]
    assert sum(width(text["text"]) for text in texts) <= 9_000
    for text in texts:
        assert text["type"] == "plain_text" or text["verbatim"] is True
    for written in [message.text, *(text["text"] for text in texts if text["type"] == "mrkdwn")]:
        assert_harmless(written)


OUR_MARKUP = re.compile(r"<@[UW][A-Z0-9]+>|<https?://[^<>|\s]+>", re.IGNORECASE)


def assert_harmless(written: str) -> None:
    rest = OUR_MARKUP.sub("", written)
    assert "<" not in rest
    assert not re.search(r"(?m)(?<!^)>", rest), "a quotation mark only at the beginning of a line"
    assert not re.search(r"&(?!amp;|lt;|gt;)", rest)


NASTY = st.sampled_from(
    [
        "<!channel>",
        "<!here|x>",
        "<@U0EVIL>",
        "<http://evil|good>",
        "&lt;",
        "\u202e",
        "\x00",
        "```",
        "\ud83d",
        "\n>",
        "🦊",
    ]
)
texts = st.one_of(
    st.text(max_size=400),
    st.lists(NASTY | st.text(max_size=5), max_size=60).map("".join),
    st.builds(lambda piece, times: piece * times, NASTY | st.text(min_size=1, max_size=3), st.integers(1, 4_000)),
)
facts = st.none() | texts | st.builds(lambda rest: "https://x.example/" + rest, texts)
jobs = st.builds(
    Job,
    id=st.text(max_size=5),
    status=st.sampled_from(["active", "completed", "archived", "failed"]) | texts,
    pr_link=facts,
    repository=facts,
    ref=facts,
    model=facts,
)
knowns = st.builds(Known, job=st.none() | jobs, trouble=st.none() | st.sampled_from(list(Trouble)), trouble_words=texts)


@given(prompt=texts, known=knowns, asker=st.just("U0ASKER") | texts)
def test_any_card_is_harmless_and_within_slacks_limits(prompt: str, known: Known, asker: str) -> None:
    message = card(replace(thread(prompt, known), asker_id=asker), WORDING)
    assert_sendable(message)


NOTICES = [what for what in What if what not in {What.CARD, What.MARK}]
REASONS = [
    "api",
    "project",
    "gone",
    "archived",
    "not_started",
    "too_old",
    "external",
    "is_archived",
    "channel_not_found",
]


@given(
    what=st.sampled_from(NOTICES),
    facts=st.dictionaries(
        st.sampled_from(
            [
                *("link", "words", "person", "request", "reason", "text", "status", "repository", "ref", "model"),
                *("again", "changed", "kind", "answer"),
            ]
        ),
        texts | st.sampled_from([*REASONS, "yes", "403", "follow_up", "U0ASKER", LINK]),
    ),
    plain=st.sampled_from(["", "yes"]),
)
@example(what=What.UNSURE, facts={"request": "\ud83d"}, plain="")
def test_any_notice_is_harmless_and_within_slacks_limits(what: What, facts: dict[str, str], plain: str) -> None:
    for message in say(what, prompt=facts.get("text", "Fix it"), plain=plain, **facts):
        assert_sendable(message)
        assert not (plain and message.blocks)


@given(texts)
def test_escaping_can_be_undone_but_for_what_cannot_be_shown(text: str) -> None:
    shown = escape(text)
    back = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert_harmless(shown)
    assert back == escape(back).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert "\x00" not in back


@given(texts, st.integers(20, 500))
def test_shortened_text_fits_and_loses_nothing_when_it_fits_anyway(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert width(short) <= limit
    if width(escape(text)) <= limit:
        assert short == escape(text)


@given(texts, st.integers(20, 500))
def test_pieces_hold_the_whole_text_and_fit_when_quoted(text: str, limit: int) -> None:
    parts = pieces(text, limit)
    assert escape("".join(parts)) == escape(text)
    assert all(0 < width(quote(part)) <= limit for part in parts)


@given(st.text(max_size=2_000))
def test_an_opening_says_whether_there_is_more(text: str) -> None:
    head, cut = opening(text, characters=300, lines=4)
    assert len(head) <= 300
    assert head.count("\n") <= 3
    assert cut or head == opening(text, characters=10_000, lines=10_000)[0]


@pytest.mark.parametrize("url", [LINK, "http://x.example", "HTTPS://X.example/a?b=c&d=e#f", "http://[::1]:8080/p"])
def test_http_addresses_become_links(url: str) -> None:
    assert safe_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        None,
        "javascript:alert(1)",
        "ftp://x.example/",
        "https://",
        "https:///path",
        "//x.example/",
        "https://x.example/a b",
        "https://x.example/a\nb",
        "https://x.example/|label",
        "https://x.example/<b>",
        "https://x.example/\x00",
        "https://x.example/\u202egnp.exe",
        "https://good.example@evil.example/",
        "https://[bad/",
        "https://x.example:99999/",
        "https://x.example/" + "a" * 3_000,
    ],
)
def test_anything_else_stays_text(url: str | None) -> None:
    assert safe_url(url) is None


def test_a_card_tells_who_asked_what_and_where_it_stands() -> None:
    message = card(thread('Replace "colour" with "color" & <b>'), WORDING)
    assert "<@U0ASKER> asked:" in message.blocks[0]["text"]["text"]
    assert '>Replace "colour" with "color" &amp; &lt;b&gt;' in message.blocks[0]["text"]["text"]
    assert "Waiting to be sent" in message.text
    assert [block["type"] for block in message.blocks] == ["section", "section"]


def test_a_long_prompt_is_one_click_away() -> None:
    message = card(thread("word " * 200), WORDING)
    (button,) = message.blocks[-1]["elements"]
    assert (button["action_id"], button["value"]) == ("show_prompt", "th1")
    assert "…" in message.blocks[0]["text"]["text"]


def test_a_pull_request_is_a_button_and_a_link_on_the_card() -> None:
    known = Known(job=job("completed", pr_link=LINK, repository="https://git.example/team/guides", ref="main"))
    message = card(thread(known=known), WORDING)
    assert "Finished: the pull request is ready" in message.text
    assert [(b["action_id"], b["url"]) for b in message.blocks[-1]["elements"]] == [("open_pull_request", LINK)]
    shown = [element["text"] for element in message.blocks[2]["elements"]]
    assert shown == [
        "Repository: <https://git.example/team/guides>",
        "Branch: main",
        f"Pull request: <{LINK}>",
    ]


def test_a_link_that_is_no_address_is_text() -> None:
    known = Known(job=job("completed", pr_link="javascript:alert('<!channel>')"))
    message = card(thread(known=known), WORDING)
    assert [block["type"] for block in message.blocks] == ["section", "section", "context"]
    assert "javascript:alert('&lt;!channel&gt;')" in message.text


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (Known(), "Waiting to be sent"),
        (Known(trouble=Trouble.OUT_OF_REACH), "can't be reached"),
        (Known(trouble=Trouble.NOT_ALLOWED), "<@U0ADMIN>"),
        (Known(trouble=Trouble.REFUSED, trouble_words="prompt too <long>"), ">prompt too &lt;long&gt;"),
        (Known(trouble=Trouble.UNSURE), "not known whether"),
        (Known(job=job("active")), "Active"),
        (Known(job=job("completed")), "Finished without a pull request"),
        (Known(job=job("failed")), "Failed"),
        (Known(job=job("archived")), "Archived"),
        (Known(job=job("pondering <deeply>")), "Status: pondering &lt;deeply&gt;"),
        (Known(job=job("active"), trouble=Trouble.OUT_OF_REACH), "may have changed since"),
    ],
)
def test_the_state_in_honest_words(known: Known, words: str) -> None:
    assert words in state_line(known, WORDING)


def test_a_finished_job_mentions_the_asker_and_has_its_link_twice() -> None:
    (message,) = say(What.FINISHED, link=LINK)
    assert message.text.startswith("<@U0ASKER> Finished.")
    assert f"<{LINK}>" in message.text
    assert message.blocks[1]["elements"][0]["url"] == LINK


def test_finished_without_a_pull_request_claims_nothing_about_changes() -> None:
    words = said(What.FINISHED, link="")
    assert "without a pull request" in words
    assert "next minutes" in words
    assert "no changes" not in words


def test_sending_again_asks_first() -> None:
    (message,) = say(What.UNSURE, request="r1", person="U0ASKER", kind="follow_up")
    (button,) = message.blocks[1]["elements"]
    assert (button["action_id"], button["value"]) == ("send_again", "r1")
    assert "twice" in button["confirm"]["text"]["text"]
    assert "this follow-up" in message.text


def test_who_replies_below_an_uncertain_start_learns_that_it_waits() -> None:
    assert "Replies in this thread are kept" in said(What.UNSURE, request="r1", kind="start")
    assert "Replies" not in said(What.UNSURE, request="r1", kind="follow_up")


def test_only_a_refusal_for_age_can_be_sent_again() -> None:
    (too_old,) = say(What.REFUSED, request="r1", reason="too_old", kind="start")
    (by_api,) = say(What.REFUSED, request="r1", reason="api", kind="start", words="prompt is <empty>")
    assert too_old.blocks[1]["elements"][0]["value"] == "r1"
    assert len(by_api.blocks) == 1
    assert ">prompt is &lt;empty&gt;" in by_api.text


@pytest.mark.parametrize("reason", ["api", "project", "gone", "archived", "not_started", "too_old", "external"])
def test_every_refusal_says_what_was_refused(reason: str) -> None:
    assert "follow-up" in said(What.REFUSED, reason=reason, kind="follow_up")


def test_not_allowed_names_whom_to_ask() -> None:
    assert "<@U0ADMIN>" in said(What.NOT_ALLOWED, status="401")
    assert "whoever installed Pagehand" in Wording().ask
    assert Wording(admin="the docs team <!here>").ask == "the docs team &lt;!here&gt;"


def test_cannot_post_tells_how_to_invite_and_keeps_the_request() -> None:
    words = said(What.CANNOT_POST, person="U0ASKER", reason="channel_not_found")
    assert "`/invite` <@U0BOT>" in words
    assert ">Fix it" in words
    assert "archived" in said(What.CANNOT_POST, person="U0ASKER", reason="is_archived")
    assert "restricted_action" in said(What.CANNOT_POST, person="U0ASKER", reason="restricted_action")


def test_a_huge_prompt_is_shown_whole_in_several_messages() -> None:
    prompt = "".join(f"<{n}>\n" for n in range(4_000))
    parts = say(What.WHOLE_PROMPT, text=prompt)
    assert len(parts) > 1
    shown = "\n".join(block["text"]["text"] for part in parts for block in part.blocks[1:])
    assert [line.removeprefix(">") for line in shown.split("\n") if line != ">"] == [
        f"&lt;{n}&gt;" for n in range(4_000)
    ]


def test_words_only_where_blocks_were_refused() -> None:
    (message,) = say(What.UNSURE, plain="yes", request="r1")
    assert message.blocks == ()


def test_help_names_the_command_and_the_marks() -> None:
    words = help_text(Wording(command="/pages"))
    for expected in ("`/pages ", "`//`", ":eyes:", ":white_check_mark:", ":warning:"):
        assert expected in words
