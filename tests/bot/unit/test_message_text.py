"""Slack's message format: what Slack sends, what the agent gets, and what must not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.context.message_text import (
    PRIVATE_CHANNEL,
    RULES,
    keeping_names,
    mentioned,
    same_words,
    unescape,
    unescape_keeping_mentions,
    with_names,
)

SENT_AND_TOLD = [
    # names that Slack links automatically, with the typed text as the label
    ("see <http://README.md|README.md>", "see README.md"),
    ("see <http://example.com|example.com>", "see example.com"),
    ("see <https://example.org|example.org>", "see example.org"),
    ("see <http://example.com/|example.com>", "see example.com"),
    ("see <http://readme.md|README.md>", "see README.md"),
    ("see <http://docs.acme.com/a?x=1&amp;y=2|docs.acme.com/a?x=1&amp;y=2>", "see docs.acme.com/a?x=1&y=2"),
    ("see <https://x.test/a|https://x.test/a>", "see https://x.test/a"),
    ("mail <mailto:bob@x.test|bob@x.test>", "mail bob@x.test"),
    ("mail <mailto:bob@x.test>", "mail bob@x.test"),
    ("call <tel:+15551234|+15551234>", "call +15551234"),
    ("call <tel:+15551234|+1 (555) 12-34>", "call +1 (555) 12-34"),
    ("call <tel:+15551234>", "call +15551234"),
    # labels that differ from their address
    ("see <https://acme.com/docs/install|install>", "see install (https://acme.com/docs/install)"),
    ("see <https://example.org/a|the page>", "see the page (https://example.org/a)"),
    ("see <http://x.test/A|x.test/a>", "see x.test/a (http://x.test/A)"),
    ("ask <mailto:bob@x.test|Bob>", "ask Bob (bob@x.test)"),
    ("ask <tel:112|the fire brigade>", "ask the fire brigade (112)"),
    ("run <slack://open?team=T1|Slack>", "run Slack (slack://open?team=T1)"),
    # bare addresses
    ("see <https://example.org/a?b&amp;c>", "see https://example.org/a?b&c"),
    ("see <https://example.org/a|>", "see https://example.org/a"),
    # people, channels, groups
    ("ask <@U012AB3CD> and <@W012AB3CD>", "ask @U012AB3CD and @W012AB3CD"),
    ("ask <@U012AB3CD|ana>", "ask @ana"),
    ("ask <@U012AB3CD|@ana>", "ask @ana"),
    ("in <#C012AB3CD|docs>", "in #docs"),
    ("in <#C012AB3CD>", "in #C012AB3CD"),
    ("in <#C012AB3CD|>", "in #C012AB3CD"),
    ("in <#G012AB3CD|secret-plans>", "in #secret-plans"),
    ("ask <!subteam^S012AB3CD|@writers>", "ask @writers"),
    ("ask <!subteam^S012AB3CD>", "ask @S012AB3CD"),
    ("<!here> <!channel> <!everyone> <!here|here> <!channel|@channel>", "@here @channel @everyone @here @channel"),
    ("on <!date^1392734382^{date_num}|2014-02-18>", "on 2014-02-18"),
    ("on <!date^1392734382^{date}^https://x.test|18 Feb>", "on 18 Feb"),
    ("what <!nobody_knows|this> is, and <!that>", "what @this is, and @that"),
    # the three escaped characters, once
    ("a &lt;b&gt; &amp; c", "a <b> & c"),
    ("&amp;lt;", "&lt;"),
    ("&lt;@U012AB3CD&gt; &lt;http://x.test|x.test&gt;", "<@U012AB3CD> <http://x.test|x.test>"),
    ("a\x00b\x1bc\nd\te", "abc\nd\te"),
    (" two  blanks ", "two  blanks"),
]

UNCHANGED = [
    "README.md",
    "example.com and https://example.org/a",
    "bob@x.test, @ana, #docs, @U012AB3CD, @here",
    "a < b > c, a|b, x <- y, if (a<b && b>c)",
    "<div class='x'>, <br/>, List<String>, <@someone>, <#1>, <not a link|label>",
    "&nbsp; &quot; &#60;",
    "`code` ```block``` *bold* _italic_ > quoted :tada:",
]


@pytest.mark.parametrize(("sent", "told"), SENT_AND_TOLD)
def test_slacks_markup_becomes_readable_text(sent: str, told: str) -> None:
    assert unescape(sent) == told


@pytest.mark.parametrize("words", UNCHANGED)
def test_text_that_only_resembles_a_reference_is_unchanged(words: str) -> None:
    assert unescape(words) == words


def test_every_rule_is_shown_by_an_example() -> None:
    unused = list(RULES)
    for sent, _ in SENT_AND_TOLD:
        for target in (part.partition(">")[0].partition("|")[0] for part in sent.split("<")[1:]):
            found = next((rule for rule in RULES if rule.target.fullmatch(target)), None)
            unused = [rule for rule in unused if rule is not found]
    assert unused == []


def test_an_unnamed_person_can_be_named_later() -> None:
    recorded = unescape_keeping_mentions(
        "ask <@U012AB3CD>, <@W9> and <@U012AB3CD>, not @U012AB3CD or &lt;@U012AB3CD&gt;"
    )
    assert mentioned(recorded) == ("U012AB3CD", "W9")
    named = with_names(recorded, {"U012AB3CD": "Ana Silva"})
    assert named == "ask @Ana Silva, @W9 and @Ana Silva, not @U012AB3CD or <@U012AB3CD>"


@pytest.mark.parametrize("typed", ["\x02U012AB3CD\x03", "@U012AB3CD", "&lt;@U012AB3CD&gt;", "<@U1|\x02U2\x03>"])
def test_a_typed_text_cannot_forge_a_person_marker(typed: str) -> None:
    assert mentioned(unescape_keeping_mentions(typed)) == ()


def test_an_unnamed_channel_or_group_can_be_named_later() -> None:
    """By a name, or by a description if it is private; a person's name can be anything."""
    told = unescape_keeping_mentions("see <#C1>, <#C2|> and <#C3|docs>; ask <!subteam^S1> or <@U1>, not #C1 or @S1")
    assert mentioned(told) == ("C1", "C2", "S1", "U1")
    names = {"C1": "general", "C2": PRIVATE_CHANNEL, "S1": "writers", "U1": PRIVATE_CHANNEL}
    read = "see #general, a private channel and #docs; ask @writers or @a private channel, not #C1 or @S1"
    assert with_names(told, names) == with_names(keeping_names(told, names), {}) == read
    assert same_words(keeping_names(told, names), told)


def test_a_row_of_an_older_version_is_read_unchanged() -> None:
    assert with_names("ask @U012AB3CD", {"U012AB3CD": "Ana Silva"}) == "ask @U012AB3CD"


def test_a_marker_never_shows_even_in_a_cut_text() -> None:
    recorded = unescape_keeping_mentions("ask <@U012AB3CD> and <@U2>")
    for end in range(len(recorded)):
        told = with_names(recorded[:end], {})
        assert "\x02" not in told
        assert "\x03" not in told


SIZE = 1_000_000
HOSTILE = [
    "<",
    "<a|",
    "<@U1|",
    "<http://a|a",
    "<!date^",
    "&amp;",
    " ",
    "<@",
    "<http://",
    "<mailto:",
    "&",
    "\n",
    "|",
    ">",
]
HOSTILE += ["<>", "<a|<a|", "<a" + "b" * 1000 + "|", "\x02U1", "\x02", "<http://a b|"]


@pytest.mark.first(piece=7)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: repr(piece[:8]))
def test_a_hostile_text_of_a_megabyte_is_read(piece: str) -> None:
    for text in (piece * (SIZE // len(piece)), "<" + piece * (SIZE // len(piece))):
        recorded = unescape_keeping_mentions(text)
        assert len(with_names(recorded, {})) <= len(text)


@given(st.text(alphabet=st.sampled_from("<>@#!|&;^:/.ab1UCT \n\x02\x03"), max_size=60))
def test_any_text_is_read_and_shows_no_marker(text: str) -> None:
    told = unescape(text)
    assert told == told.strip()
    assert not set(told) & {"\x02", "\x03"}
