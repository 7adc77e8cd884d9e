"""The card and the notices: harmless with any text by people, agents and APIs, and within Slack's limits."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.any_notices import KINDS, messages_of
from support.worlds.thread_states import thread_state

from bot.domain.jobs.details import Answer, JobReport, Progress
from bot.domain.jobs.job import Problem
from bot.domain.people.permissions import Refusal
from bot.domain.projects import ProjectReason
from bot.domain.requests.request import RejectionReason, RequestKind, WayIn
from bot.domain.threads.thread import Failure, FollowUpCounts, Thread, ThreadOptions, ThreadState
from bot.jobapi.models import ChangeKind, Changes, FileChange, Job, PlanStep, PullRequestState, StepStatus
from bot.notices.answers import (
    ActionAnswer,
    ActionAnswered,
    CardNotPosted,
    PostNotDelivered,
    PromptRequested,
    StatusRequested,
)
from bot.notices.job import JobFailed, JobFinished, PullRequestFound
from bot.notices.notice import CardChanged, Notice, NoticeContent, ReactionChanged, UnknownNotice
from bot.notices.questions import RequestRefused
from bot.notices.requests import (
    AccessDenied,
    ContextCut,
    OutageEnded,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.cards import card, state_line
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import escape, opening, pieces, quote, safe_url, shorten, width
from bot.workspace.wire.blocks import checked_blocks

CONTEXT = MessageContext(command="/docs", admin="U0ADMIN", bot_user_id="U0BOT")
LINK = "https://git.example/team/guides/pull/7"


def thread(prompt: str = "Fix the guides", state: ThreadState | None = None) -> Thread:
    return Thread(
        id="th1",
        team_id="T1",
        channel_id="C1",
        requester_id="U0ASKER",
        prompt=prompt,
        project="p",
        created_at=0.0,
        ts="1.000001",
        state=state or ThreadState(),
    )


def job(status: str = "active", **facts: Any) -> Job:
    return Job(id="j1", status=status, **facts)


def say(message: NoticeContent, prompt: str = "Fix it", *, without_blocks: bool = False) -> list[ChatMessage]:
    notice = Notice(1, "k", "th1", message, 0.0, without_blocks=without_blocks)
    return messages(thread(prompt), notice, CONTEXT)


def said(message: NoticeContent) -> str:
    return "\n".join(each.text for each in say(message))


FOLLOW_UP = RequestSummary("r1", "U0ASKER", RequestKind.FOLLOW_UP)
START = RequestSummary("r1", "U0ASKER", RequestKind.START)


def rejected(reason: RejectionReason, request: RequestSummary = FOLLOW_UP, api_text: str = "") -> RequestRejected:
    return RequestRejected(request, reason, api_text)


def text_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") in {"mrkdwn", "plain_text"}:
            yield value
        for item in value.values():
            yield from text_objects(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from text_objects(item)


def assert_sendable(message: ChatMessage) -> None:
    """Checks Slack's documented limits, our own limit on all blocks together, and that the only markup is our own."""
    checked_blocks([dict(block) for block in message.blocks])
    assert 0 < len(message.text) <= 4_000
    texts = [text for block in message.blocks for text in text_objects(block)]
    assert len(message.blocks) <= 50
    assert sum(width(text["text"]) for text in texts) <= 9_000
    for text in texts:
        assert text["type"] == "plain_text" or text["verbatim"] is True
    for written in [message.text, *(text["text"] for text in texts if text["type"] == "mrkdwn")]:
        assert_harmless(written)


OUR_MARKUP = re.compile(
    r"<@[UW][A-Z0-9]+>|<https?://[^<>|\s]+>|<!date\^\d{1,11}\^(?:\{time\}\|\d\d:\d\d"
    r"|\{date_short_pretty\} \{time\} \(\{ago\}\)\|\d{4}-\d\d-\d\d \d\d:\d\d) UTC>",
    re.IGNORECASE,
)


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
times = st.just(0.0) | st.floats(0, 10**11 - 1)
steps = st.builds(PlanStep, title=texts, status=st.sampled_from(StepStatus))
files = st.builds(FileChange, path=texts, kind=st.sampled_from(ChangeKind), title=texts)
progresses = st.builds(
    Progress,
    plan=st.lists(steps, max_size=12).map(tuple),
    activity=texts,
    pull_request=st.none() | st.sampled_from(PullRequestState),
    changes=st.none()
    | st.builds(Changes, files=st.lists(files, max_size=12).map(tuple), file_count=st.integers(0, 999)),
)
knowns = st.builds(
    thread_state,
    job=st.none() | jobs,
    problem=st.none() | st.sampled_from(list(Problem)),
    problem_text=texts,
    problem_until=st.none() | st.integers(0, 10**11 - 1),
    progress=progresses,
    question=st.sampled_from(["", "0a"]),
    muted_by=st.sampled_from(["", "U0BEN"]) | texts,
    participants=st.lists(st.sampled_from(["U0BEN", "U0CAI"]) | texts, max_size=50).map(tuple),
    work_began_at=times,
    work_ended_at=times,
)
reasons = st.none() | st.sampled_from(ProjectReason)
settled = st.builds(
    ThreadOptions, st.sampled_from(WayIn), quiet=st.booleans(), project_said=texts, project_reason=reasons
)
people = st.just("U0ASKER") | texts
any_threads = st.builds(
    lambda prompt, state, requester, project, options, created: replace(
        thread(prompt, state), requester_id=requester, project=project, options=options, created_at=created
    ),
    texts,
    knowns,
    people,
    texts,
    settled,
    times,
)
counts = st.builds(FollowUpCounts, st.integers(0, 10**9), st.integers(0, 10**9))


@given(any_thread=any_threads, follow_ups=counts, several_projects=st.booleans())
def test_any_card_is_harmless_and_within_slacks_limits(
    any_thread: Thread, follow_ups: FollowUpCounts, *, several_projects: bool
) -> None:
    """With any state, by any author."""
    context = replace(CONTEXT, several_projects=several_projects)
    message = card(any_thread, context, follow_ups)
    assert_sendable(message)
    assert len(message.blocks[-1]["elements"]) <= 5
    status = Notice(1, "k", "th1", StatusRequested("U0ANA"), 0.0)
    for made in messages(any_thread, status, context, follow_ups=follow_ups):
        assert_sendable(made)


ENDS = (JobFinished("", report=None), JobFinished(LINK, new=True), JobFailed(), PullRequestFound(LINK))


@pytest.mark.parametrize("end", ENDS)
@given(any_thread=any_threads)
def test_any_end_notice_is_harmless_and_mentions_at_most_one_person(end: NoticeContent, any_thread: Thread) -> None:
    """However many people steered, and whatever their ids look like."""
    for made in messages(any_thread, Notice(1, "k", "th1", end, 0.0), CONTEXT):
        assert_sendable(made)
        assert made.text.count("<@") <= 1


SAID = [kind for kind in KINDS if kind not in {CardChanged, ReactionChanged}]


@pytest.mark.first(kind=12)
@pytest.mark.parametrize("kind", SAID)
@given(data=st.data(), prompt=texts, without_blocks=st.booleans())
def test_any_notice_is_harmless_and_within_slacks_limits(
    kind: type[Any], data: st.DataObject, prompt: str, *, without_blocks: bool
) -> None:
    message = data.draw(messages_of(kind, texts | st.sampled_from([LINK, "U0ASKER", "", "is_archived", "\ud83d"])))
    for made in say(message, prompt=prompt, without_blocks=without_blocks):
        assert_sendable(made)
        assert not (without_blocks and made.blocks)


def test_an_outage_with_two_long_reasons_fits_its_section() -> None:
    """Ours and the job API's, of characters that grow when escaped."""
    for made in say(OutageStarted(Problem.OUT_OF_REACH, "<!channel>" * 100, "&lt;" * 500, waiting=LONG)):
        assert_sendable(made)


def test_a_failure_with_a_long_reason_and_link_fits_its_section() -> None:
    """Both of characters that grow when escaped, with everything that can be beside them."""
    report = JobReport(reason="<!channel>" * 44, partial_files=1)
    for made in say(JobFailed(report=report, link="<!channel>" * 125, person_id="0" * 85 + "<" * 22)):
        assert_sendable(made)


def test_the_longest_answer_fits_its_block() -> None:
    """Of characters that grow when escaped: the message cuts it."""
    for made in say(JobFinished(LINK, report=JobReport(answer=Answer("<!channel>" * 2_000, "0" * 64)))):
        assert_sendable(made)


@pytest.mark.parametrize("message", [CardChanged(), ReactionChanged("1.1", None)])
def test_a_notice_without_its_own_message_has_no_text(message: NoticeContent) -> None:
    with pytest.raises(ValueError, match="no message of its own"):
        say(message)


def test_a_notice_of_a_newer_version_is_shown_as_recorded() -> None:
    assert said(UnknownNotice("shrug", {"mood": "so & so", "count": 3})) == "mood: so &amp; so, count: 3"
    assert said(UnknownNotice("shrug", {})) == "News."


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (ContextCut("U0ANA", ("a&b.png",)), "Only a link, not the content: a&amp;b.png."),
        (
            ContextCut("U0ANA", name_only=("<c>.pdf", "")),
            "Neither content nor link: &lt;c&gt;.pdf, a file. Reply with what",
        ),
        (ContextCut("U0ANA", thread_unread=True), "Slack didn't give me its messages. Reply with what matters."),
    ],
)
def test_omitted_parts_are_explained_with_a_remedy(cut: ContextCut, words: str) -> None:
    """A link is promised only if there is one."""
    (message,) = say(cut)
    assert message.text.startswith("<@U0ANA> Your request goes to the agent, but not all that belongs to it:\n• ")
    assert words in message.text


@given(texts)
def test_escaping_can_be_undone_except_for_unprintable_text(text: str) -> None:
    shown = escape(text)
    back = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert_harmless(shown)
    assert back == escape(back).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert "\x00" not in back


@given(texts, st.integers(20, 500))
def test_shortened_text_fits_and_short_text_is_unchanged(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert width(short) <= limit
    if width(escape(text)) <= limit:
        assert short == escape(text)


@given(texts, st.integers(20, 500))
def test_quoted_pieces_hold_the_whole_text(text: str, limit: int) -> None:
    parts = pieces(text, limit)
    assert escape("".join(parts)) == escape(text)
    assert all(0 < width(quote(part)) <= limit for part in parts)


@given(st.text(max_size=2_000))
def test_an_excerpt_shows_whether_there_is_more(text: str) -> None:
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
def test_other_schemes_stay_text(url: str | None) -> None:
    assert safe_url(url) is None


def test_a_card_shows_requester_request_and_state() -> None:
    message = card(thread('Replace "colour" with "color" & <b>'), CONTEXT)
    assert message.blocks[0]["text"]["text"] == "*Waiting to be sent to the agent*"
    assert "<@U0ASKER> asked:" in message.blocks[1]["text"]["text"]
    assert '>Replace "colour" with "color" &amp; &lt;b&gt;' in message.blocks[1]["text"]["text"]
    assert message.text.startswith("Waiting to be sent to the agent.\n<@U0ASKER> asked: Replace")
    assert [block["type"] for block in message.blocks] == ["section", "section", "context", "actions"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ThreadState(), "Waiting to be sent"),
        (ThreadState(failure=Failure(problem=Problem.OUT_OF_REACH)), "I can't reach the agent"),
        (ThreadState(failure=Failure(problem=Problem.NOT_ALLOWED)), "<@U0ADMIN>"),
        (
            ThreadState(failure=Failure(problem=Problem.REJECTED, problem_text="prompt too <long>")),
            ">prompt too &lt;long&gt;",
        ),
        (ThreadState(failure=Failure(problem=Problem.UNCERTAIN)), "I can't tell if this started"),
        (ThreadState(job=job("active")), "Active"),
        (ThreadState(job=job("completed")), "Finished without a pull request"),
        (ThreadState(job=job("failed")), "Failed"),
        (ThreadState(job=job("archived")), "Archived"),
        (ThreadState(job=job("pondering <deeply>")), "Status: pondering &lt;deeply&gt;"),
        (ThreadState(job=job("active"), failure=Failure(problem=Problem.OUT_OF_REACH)), "may be out of date"),
        (ThreadState(job=job("archived")), "follow-ups are no longer sent"),
        (ThreadState(failure=Failure(problem=Problem.RATE_LIMITED)), "hourly limit is used up*\nIt goes out"),
        (
            ThreadState(failure=Failure(problem=Problem.RATE_LIMITED, problem_text="100 <an> hour")),
            ">100 &lt;an&gt; hour",
        ),
        (ThreadState(failure=Failure(problem=Problem.BUSY)), "the agent is busy"),
        (ThreadState(failure=Failure(problem=Problem.FAULTY)), "isn't answering properly"),
        (
            ThreadState(job=job("active"), failure=Failure(problem=Problem.RATE_LIMITED)),
            "limit is used up, so this may be out of date",
        ),
        (ThreadState(job=job("active"), failure=Failure(problem=Problem.BUSY)), "busy, so this may be out of date"),
        (
            ThreadState(job=job("active"), failure=Failure(problem=Problem.FAULTY)),
            "isn't answering properly, so this may",
        ),
        (ThreadState(job=job("failed"), failure=Failure(problem=Problem.GONE)), "When last seen: Failed"),
    ],
)
def test_the_state_is_described_accurately(state: ThreadState, words: str) -> None:
    assert words in state_line(state, CONTEXT)


LONG = replace(FOLLOW_UP, text="Shorter <b>please</b>,\nand " + "longer " * 20)


@pytest.mark.parametrize(
    "message",
    [
        rejected(RejectionReason.API, LONG),
        rejected(RejectionReason.ARCHIVED, LONG),
        RequestUncertain(LONG, job_ended=True),
        RequestUncertain(LONG, job_ended=False),
        OutageStarted(Problem.OUT_OF_REACH, "cannot be reached", waiting=LONG),
        OutageStarted(Problem.RATE_LIMITED, waiting=LONG),
        AccessDenied(403, waiting=LONG),
    ],
)
def test_a_follow_up_is_quoted_by_its_first_words(message: NoticeContent) -> None:
    words = said(message)
    assert 'our follow-up ("Shorter &lt;b&gt;please&lt;/b&gt;, and longer' in words
    assert '…")' in words


def test_an_exceeded_quota_is_explained_in_the_apis_words_with_its_end() -> None:
    limited = OutageStarted(Problem.RATE_LIMITED, "asks to wait", "100 <an> hour", 1_700_000_040, waiting=START)
    words = said(limited)
    assert "hourly limit is used up, at least until <!date^1700000040^{time}|22:14 UTC>." in words
    assert ">100 &lt;an&gt; hour" in words
    assert "can't reach" not in words
    busy = said(replace(limited, problem=Problem.BUSY))
    assert "busy, at least until" in busy
    assert "limit" not in busy
    assert "takes requests again" in said(OutageEnded(Problem.RATE_LIMITED))
    assert "until" not in said(replace(limited, until=None))


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (JobFinished(LINK, new=True), "Done. Here's the pull request:"),
        (JobFinished(LINK, new=True, again=True), "Done. Here's the pull request:"),
        (JobFinished(LINK, new=True, again=True, changed=True), "Done. Here's a new pull request:"),
        (JobFinished(LINK), "Done. Here's the pull request:"),
        (JobFinished(LINK, again=True), "Done. Check the pull request:"),
    ],
)
def test_an_end_claims_only_what_is_known_of_the_pull_request(end: JobFinished, words: str) -> None:
    text = said(end)
    assert f"<@U0ASKER> {words}" in text
    assert f"<{LINK}>" in text
    assert "ready" not in text


def test_only_a_request_that_came_back_can_be_sent_again() -> None:
    (handed_back,) = say(rejected(RejectionReason.HANDED_BACK, START))
    (by_api,) = say(rejected(RejectionReason.API, START, "prompt is <empty>"))
    assert handed_back.blocks[1]["elements"][0]["value"] == "r1"
    assert len(by_api.blocks) == 1
    assert ">prompt is &lt;empty&gt;" in by_api.text


def test_an_inaccessible_channel_says_how_to_invite_and_quotes_the_request() -> None:
    words = said(CardNotPosted("U0ASKER", "channel_not_found"))
    assert "`/invite` <@U0BOT>" in words
    assert ">Fix it" in words
    assert "archived" in said(CardNotPosted("U0ASKER", "is_archived"))
    assert "the thread is gone" in said(CardNotPosted("U0ASKER", "thread_not_found"))
    assert "restricted_action" in said(CardNotPosted("U0ASKER", "restricted_action"))


def test_a_notice_in_doubt_is_repeated_with_a_remark() -> None:
    doubtful = PostNotDelivered("U0ASKER", JobFinished(LINK), may_be_posted=True)
    (told,) = say(doubtful)
    assert told.text.startswith("I can't tell if this reached the job's thread:\n<@U0ASKER> Done.")
    assert_sendable(told)
    (plain,) = say(doubtful, without_blocks=True)
    assert (plain.text, plain.blocks) == (told.text, ())
    (certain,) = say(replace(doubtful, may_be_posted=False))
    (posted,) = say(JobFinished(LINK))
    assert certain == posted
    assert "can't tell" not in posted.text


def test_a_huge_prompt_is_shown_whole_in_several_messages() -> None:
    prompt = "".join(f"<{n}>\n" for n in range(4_000))
    parts = say(PromptRequested("U0ASKER", prompt))
    assert len(parts) > 1
    shown = "\n".join(block["text"]["text"] for part in parts for block in part.blocks[1:])
    assert [line.removeprefix(">") for line in shown.split("\n") if line != ">"] == [
        f"&lt;{n}&gt;" for n in range(4_000)
    ]


def test_a_person_over_the_limit_is_told_when_they_may_ask_again() -> None:
    """In their time zone; if it is unknown, "in a while"."""
    refused = RequestRefused("U0ANA", Refusal.TOO_MANY, RequestKind.START, "Fix <it>", 5, 1_700_000_040)
    words = said(refused)
    assert words.startswith("No job was started: you've reached the hourly limit (5).")
    assert "Please try again after <!date^1700000040^{time}|22:14 UTC>.\nYou wrote:\n>Fix &lt;it&gt;" in words
    assert "Please try again in a while." in said(replace(refused, free_at=None))


@pytest.mark.parametrize("why", Refusal)
def test_a_refused_person_learns_why_and_what_to_do(why: Refusal) -> None:
    """No braces are left, and it ends with a full stop."""
    words = said(RequestRefused("U0ANA", why, RequestKind.FOLLOW_UP))
    assert words.startswith("Your reply wasn't sent: ")
    assert words.endswith(".")
    assert "{" not in words.replace("{time}", "")


@pytest.mark.parametrize("answer", ActionAnswer)
def test_every_action_has_an_answer(answer: ActionAnswer) -> None:
    """Of one or two sentences."""
    assert said(ActionAnswered("U0ANA", answer)).endswith(".")


def held(count: int, *names: str, words_sent: bool = False, forwarded: bool = False) -> ReplyNotFullySent:
    return ReplyNotFullySent("U0ANA", words_sent, count, names, forwarded)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (held(1, "plan.pdf", words_sent=True), "Your text goes to the agent, but not 1 file (plan.pdf):"),
        (held(3, "a.png", "b & <c>.png"), "holds only 3 files (a.png, b &amp; &lt;c&gt;.png and 1 more),"),
        (held(1, "a", forwarded=True), "holds only 1 file (a) and a forwarded message,"),
        (held(0), "your reply has no words for the agent. Reply with what"),
    ],
)
def test_parts_of_a_reply_besides_words_are_named(reply: ReplyNotFullySent, words: str) -> None:
    (message,) = say(reply)
    assert message.text.startswith("<@U0ANA> ")
    assert words in message.text
