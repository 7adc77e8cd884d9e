"""The parts of a Slack message besides its text: read, bounded and cleaned, in any form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.context.message_text import mention
from bot.domain.context.slack_files import ForwardedMessage, LinkPreview, SlackFile
from bot.slack.message_parts.attachments import files_of, forwarded_of, previews_of
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.message_parts.thread_messages import thread_message

FILE: dict[str, Any] = {
    "id": "F0123ABC",
    "name": "guide.md",
    "title": "The guide",
    "mimetype": "text/markdown",
    "size": 120,
    "mode": "hosted",
    "url_private": "https://files.slack.com/files-pri/T1-F1/guide.md",
    "url_private_download": "https://files.slack.com/files-pri/T1-F1/download/guide.md",
    "permalink": "https://acme.slack.com/files/U1/F1/guide.md",
}
SHARE: dict[str, Any] = {
    "is_share": True,
    "is_msg_unfurl": True,
    "author_id": "U0BEN",
    "author_name": "Ben",
    "channel_id": "C1",
    "from_url": "https://acme.slack.com/archives/C1/p1700000000000100",
    "text": "Ports &amp; <@U0ANA>",
    "fallback": "[November 14th] Ben: Ports",
    "ts": "1700000000.000100",
    "files": [FILE],
}
READ_FILE = SlackFile(
    "F0123ABC", "guide.md", "text/markdown", 120, FILE["url_private_download"], FILE["permalink"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OTHERS = (
    "type",
    "user",
    "subtype",
    "attachments",
    "blocks",
    "fields",
    "value",
    "elements",
    "message",
    "rows",
    "bot_id",
)
KEYS = st.sampled_from((*FILE, *SHARE, *OTHERS, "message_blocks", "username"))
PAYLOADS = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=8), max_leaves=30
)


def test_a_file_is_read_as_slack_describes_it() -> None:
    """Its download address is used."""
    assert files_of(SlackMessage.read({"files": [FILE]})) == (READ_FILE,)


def test_an_external_file_is_a_link_and_a_deleted_one_is_left_out() -> None:
    """Our token is never sent there."""
    elsewhere = {"id": "F1", "name": "Plan", "mode": "external", "url_private": "https://docs.example.com/plan"}
    (read,) = files_of(SlackMessage.read({"files": [elsewhere, {"id": "F2", "mode": "tombstone"}]}))
    assert (read.url, read.permalink, read.may_be_text) == ("", "https://docs.example.com/plan", False)


def test_a_forwarded_message_is_read() -> None:
    """Its author and mentioned people are marked, to be named later."""
    told = ForwardedMessage(mention("U0BEN"), f"Ports & {mention('U0ANA')}", SHARE["from_url"], (READ_FILE,))
    assert forwarded_of(SlackMessage.read({"attachments": [SHARE]})) == (told,)
    assert previews_of(SlackMessage.read({"attachments": [SHARE]})) == ()
    linked = SHARE | {"is_share": None, "author_id": None}
    assert forwarded_of(SlackMessage.read({"attachments": [linked]}))[0].author == "Ben"


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "Ports &amp; more"}}]},
        {
            "text": "",
            "message_blocks": [
                {"message": {"blocks": [{"type": "section", "text": {"type": "plain_text", "text": "Ports & more"}}]}}
            ],
        },
        {"text": None, "fallback": "Ports &amp; more"},
    ],
)
def test_the_text_of_a_forwarded_message_is_found_in_several_fields(changes: dict[str, Any]) -> None:
    """Any field with text counts."""
    assert forwarded_of(SlackMessage.read({"attachments": [SHARE | changes]}))[0].text == "Ports & more"


def test_link_previews_and_app_attachments_are_not_forwarded_messages() -> None:
    """Title, text, fields, address."""
    page = {"from_url": "https://example.com/p", "title": "Ports", "text": "All &lt;of&gt; them", "service_name": "Ex"}
    alert = {"pretext": "Alert", "text": "down", "fields": [{"title": "host", "value": "a1"}, {"value": "b"}, 5]}
    alert |= {"app_id": "A1"}
    assert previews_of(SlackMessage.read({"attachments": [page, alert, {"color": "red"}, None]})) == (
        LinkPreview("Ports", "All <of> them", "https://example.com/p"),
        LinkPreview("", "Alert\ndown\nhost: a1\nb"),
    )


def test_the_parts_of_a_message_are_bounded() -> None:
    """20 files, 10 forwarded messages of 20,000 characters each, 10 previews."""
    message = {
        "files": [FILE] * 50,
        "attachments": [SHARE | {"text": "&amp;" * 100_000}] * 30 + [{"service_name": "t", "text": "x" * 100_000}] * 30,
    }
    assert len(files_of(SlackMessage.read(message))) == 20
    shares, previews = forwarded_of(SlackMessage.read(message)), previews_of(SlackMessage.read(message))
    assert (len(shares), len(previews)) == (10, 10)
    assert all(10_000 < len(share.text) <= 20_000 for share in shares)
    assert all(10_000 < len(preview.text) <= 20_000 for preview in previews)


def test_a_message_of_an_app_is_shown_with_its_name() -> None:
    """The text of its blocks is used if it is longer."""
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "The build of main is broken"}}]
    app = {"user": "U0CI", "bot_id": "B1", "bot_profile": {"name": "CI\nbot"}, "ts": "1700000000.000100"}
    read = thread_message(SlackMessage.read(app | {"text": "Broken", "blocks": blocks}))
    assert read is not None
    assert (read.author, read.text) == ("CI bot", "The build of main is broken")
    longer = thread_message(SlackMessage.read(app | {"text": "Broken since this very morning", "blocks": blocks}))
    assert longer is not None
    assert longer.text == "Broken since this very morning"
    hook = thread_message(
        SlackMessage.read({"subtype": "bot_message", "username": "Hook", "text": "x", "ts": "1700000000.000100"})
    )
    assert hook is not None
    assert hook.author == "Hook"


@pytest.mark.parametrize(
    "changes",
    [
        {"subtype": "channel_join"},
        {"subtype": "tombstone"},
        {"subtype": 5},
        {"ts": None},
        {"ts": "soon"},
        {"ts": "1700000000"},
        {"text": ""},
        {"text": None},
        {"text": " \u200b "},
    ],
)
def test_system_messages_are_left_out(changes: dict[str, Any]) -> None:
    """Events, deletions, and messages without content."""
    assert (
        thread_message(SlackMessage.read({"user": "U1", "text": "words", "ts": "1700000000.000100"} | changes)) is None
    )


@given(PAYLOADS)
def test_malformed_parts_are_read_or_left_out(payload: Any) -> None:
    """Nothing raises, and the result can be shown and recorded."""
    message = payload if isinstance(payload, dict) else {"files": payload, "attachments": payload, "blocks": payload}
    read = thread_message(SlackMessage.read(message | {"ts": "1700000000.000100", "subtype": None}))
    files_of(SlackMessage.read(payload))
    if read is not None:
        texts = [read.text, *(share.text for share in read.forwarded), *(file.name for file in read.files)]
        for text in texts:
            assert len(text) <= 20_000
            assert "\x00" not in text
            text.encode()
