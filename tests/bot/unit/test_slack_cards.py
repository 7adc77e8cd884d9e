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

from bot.codehosts.pull_request import Check, CheckOutcome, Found, Preview, PullRequest, Review, Verdict
from bot.domain.commands import AgentOptions
from bot.domain.jobs.job import Answer, JobReport, Problem, Progress
from bot.domain.permissions import Refusal
from bot.domain.projects import ProjectReason
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import RejectionReason, RequestKind, WayIn
from bot.domain.threads.thread import FollowUpCounts, ProposalEnd, Thread, ThreadOptions, ThreadState
from bot.jobapi.models import ChangeKind, Changes, FileChange, Job, Mode, PlanStep, PullRequestState, StepStatus
from bot.notices.answers import (
    CardNotPosted,
    PostNotDelivered,
    PromptRequested,
    StatusRequested,
)
from bot.notices.card import duration
from bot.notices.job import JobFailed, JobFinished, JobStopped, PullRequestFound, QuestionAsked
from bot.notices.notice import CardChanged, Notice, NoticeContent, ReactionChanged, UnknownNotice
from bot.notices.proposals import ProposalMade, ProposalPressed
from bot.notices.questions import RequestRefused
from bot.notices.requests import (
    AccessDenied,
    ContextCut,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.slack.rendering.blocks import ChatMessage, MenuItem, RichBlock, menu_value, read_menu_value
from bot.slack.rendering.cards import card, state_line
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import escape, opening, pieces, quote, safe_url, shorten, width
from bot.workspace.wire.views import checked_blocks

CONTEXT = MessageContext(command="/docs", admin="U0ADMIN", bot_user_id="U0BOT")
LINK = "https://git.example/team/guides/pull/7"
NOON = 1_700_049_600.0
"""2023-11-15, 12:00 UTC."""


THREAD = Thread("th1", "T1", "C1", "U0ANA", "Fix the guides", "guides", NOON, ts="1.1", card_ts="1.1")


def thread(prompt: str = "Fix the guides", **known: Any) -> Thread:
    return replace(THREAD, prompt=prompt, state=thread_state(**known))


def job(status: str = "active", **facts: Any) -> Job:
    return Job(id="j1", status=status, **facts)


def say(message: NoticeContent, prompt: str = "Fix it", *, without_blocks: bool = False) -> list[ChatMessage]:
    notice = Notice(1, "k", "th1", message, 0.0, without_blocks=without_blocks)
    return messages(thread(prompt), notice, CONTEXT)


def said(message: NoticeContent) -> str:
    return "\n".join(each.text for each in say(message))


FOLLOW_UP = RequestSummary("r1", "U0ANA", RequestKind.FOLLOW_UP)
START = RequestSummary("r1", "U0ANA", RequestKind.START)
LONG = replace(FOLLOW_UP, text="Shorter <b>please</b>,\nand " + "longer " * 20)


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
    tasks = [task for block in message.blocks for task in block.get("tasks", ())]
    assert len(message.blocks) <= 50
    assert sum(width(text["text"]) for text in texts) + sum(width(task["title"]) for task in tasks) <= 9_000
    assert not any(MARKUP_IN_PLAIN_TEXT.search(task["title"]) for task in tasks)
    for text in texts:
        assert text["type"] == "plain_text" or text["verbatim"] is True
    for written in [message.text, *(text["text"] for text in texts if text["type"] == "mrkdwn")]:
        assert_harmless(written)


MARKUP_IN_PLAIN_TEXT = re.compile(r"<[!@#\w]")
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
pulls = st.builds(
    lambda title, checks, reviews, previews, read_at: FollowedPullRequest(
        Found(
            PullRequest(
                number=1, link=LINK, state=PullRequestState.OPEN, head="a", title=title, checks=checks, reviews=reviews,
                previews=previews,
            )
        ),
        read_at=read_at,
    ),
    texts,
    st.lists(st.builds(Check, name=texts, outcome=st.sampled_from(CheckOutcome)), max_size=8).map(tuple),
    st.lists(st.builds(Review, author=texts, verdict=st.sampled_from(Verdict)), max_size=8).map(tuple),
    st.lists(st.builds(Preview.model_construct, name=texts, link=facts.map(str)), max_size=3).map(tuple),
    times,
)  # fmt: skip
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
    ThreadOptions,
    st.sampled_from(WayIn),
    quiet=st.booleans(),
    project_said=texts,
    project_reason=reasons,
    agent=st.builds(AgentOptions, model=texts, effort=texts),
    mode=st.sampled_from(Mode),
)
people = st.just("U0ANA") | texts
any_threads = st.builds(
    replace,
    st.just(THREAD),
    prompt=texts,
    state=knowns,
    requester_id=people,
    project=texts,
    options=settled,
    created_at=times,
    pull_request=st.none() | pulls,
)
counts = st.builds(FollowUpCounts, st.integers(0, 10**9), st.integers(0, 10**9))


@pytest.mark.full
@given(any_thread=any_threads, follow_ups=counts, several_projects=st.booleans())
def test_any_card_is_harmless_and_within_slacks_limits(
    any_thread: Thread, follow_ups: FollowUpCounts, *, several_projects: bool
) -> None:
    """With any state, by any author."""
    context = replace(CONTEXT, several_projects=several_projects)
    message = card(any_thread, context, follow_ups)
    assert_sendable(message)
    assert len(message.blocks[-1]["elements"]) <= 5
    for without in ((RichBlock.PLAN,), (RichBlock.CARD,), tuple(RichBlock)):
        plainer = card(any_thread, context, follow_ups, without=without)
        assert_sendable(plainer)
        assert plainer.text == message.text
        assert plainer.rich == message.rich - set(without)
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
    message = data.draw(messages_of(kind, texts | st.sampled_from([LINK, "U0ANA", "", "is_archived", "\ud83d"])))
    for made in say(message, prompt=prompt, without_blocks=without_blocks):
        assert_sendable(made)
        assert not (without_blocks and made.blocks)


GROWING = "<!channel>"
LONG_FAILURE = JobReport(reason=GROWING * 44, partial_files=1)


@pytest.mark.parametrize(
    "message",
    [
        OutageStarted(Problem.OUT_OF_REACH, GROWING * 100, "&lt;" * 500, waiting=LONG),
        JobFailed(report=LONG_FAILURE, link=GROWING * 125, person_id="0" * 85 + "<" * 22),
        JobFinished(LINK, report=JobReport(answer=Answer(GROWING * 2_000, "0" * 64))),
    ],
    ids=["two reasons", "reason and link", "answer"],
)
def test_the_longest_texts_fit_their_blocks(message: NoticeContent) -> None:
    """Of characters that grow when escaped, with everything that can be beside them."""
    for made in say(message):
        assert_sendable(made)


@pytest.mark.parametrize("message", [CardChanged(), ReactionChanged("1.1", None)])
def test_a_notice_without_its_own_message_has_no_text(message: NoticeContent) -> None:
    with pytest.raises(ValueError, match="no message of its own"):
        say(message)


def test_a_notice_of_a_newer_version_is_shown_as_recorded() -> None:
    assert said(UnknownNotice("shrug", {"mood": "so & so", "count": 3})) == "mood: so &amp; so, count: 3"
    assert said(UnknownNotice("shrug", {})) == "News."


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


UNSAFE_PATHS = ("a b", "a\nb", "|label", "<b>", "\x00", "\u202egnp.exe", "a" * 3_000)
NO_ADDRESSES = ("", None, "javascript:1", "ftp://x.example/", "https://", "//x.example/", "https://[bad/")


@pytest.mark.parametrize(
    "url", [*NO_ADDRESSES, "https://x.example:99999/", *(f"https://x.example/{path}" for path in UNSAFE_PATHS)]
)
def test_other_addresses_stay_text(url: str | None) -> None:
    assert safe_url(url) is None


def test_a_card_shows_requester_request_and_state() -> None:
    message = card(thread('Replace "colour" with "color" & <b>'), CONTEXT)
    assert message.blocks[0]["text"]["text"] == "*Waiting to be sent to the agent*"
    assert "<@U0ANA> asked:" in message.blocks[1]["text"]["text"]
    assert '>Replace "colour" with "color" &amp; &lt;b&gt;' in message.blocks[1]["text"]["text"]
    assert message.text.startswith("Waiting to be sent to the agent.\n<@U0ANA> asked: Replace")
    assert [block["type"] for block in message.blocks] == ["section", "section", "context", "actions"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (thread_state(), "Waiting to be sent"),
        (thread_state(problem=Problem.NOT_ALLOWED), "<@U0ADMIN>"),
        (
            thread_state(problem=Problem.REJECTED, problem_text="prompt too <long>"),
            ">prompt too &lt;long&gt;",
        ),
        (thread_state(problem=Problem.UNCERTAIN), "I can't tell if this started"),
        (thread_state(job=job("pondering <deeply>")), "Status: pondering &lt;deeply&gt;"),
        (thread_state(job=job("active"), problem=Problem.OUT_OF_REACH), "may be out of date"),
        (thread_state(job=job("archived")), "follow-ups are no longer sent"),
        (
            thread_state(problem=Problem.RATE_LIMITED, problem_text="100 <an> hour"),
            ">100 &lt;an&gt; hour",
        ),
        (
            thread_state(job=job("active"), problem=Problem.RATE_LIMITED),
            "limit is used up, so this may be out of date",
        ),
        (thread_state(job=job("failed"), problem=Problem.GONE), "When last seen: Failed"),
        (thread_state(job=job("active"), stopped_by="U0BEN"), "*Stopping, as <@U0BEN> asked*"),
        (thread_state(job=job("completed"), stopped_by="U0BEN"), "*Stopped by <@U0BEN>*"),
        (thread_state(job=job("completed"), proposal_id="p1"), "*A plan waits: press Start"),
        (
            thread_state(job=job("completed"), proposal_id="p1", proposal_untold=True, muted_by="U0BEN"),
            "*A plan waits, and comes after `!unmute`*",
        ),
        (
            thread_state(job=job("completed"), proposal_id="p1", proposal_end=ProposalEnd.DROPPED),
            "*Finished: the plan was not started*",
        ),
        (
            thread_state(job=job("completed"), proposal_id="p1", proposal_end=ProposalEnd.STARTED),
            "*Finished without a pull request*",
        ),
    ],
)
def test_the_state_is_described_accurately(state: ThreadState, words: str) -> None:
    assert words in state_line(state, CONTEXT)


@pytest.mark.parametrize(
    "message",
    [
        rejected(RejectionReason.API, LONG),
        RequestUncertain(LONG, job_ended=False),
        OutageStarted(Problem.OUT_OF_REACH, "cannot be reached", waiting=LONG),
        AccessDenied(403, waiting=LONG),
    ],
)
def test_a_follow_up_is_quoted_by_its_first_words(message: NoticeContent) -> None:
    words = said(message)
    assert 'our follow-up ("Shorter &lt;b&gt;please&lt;/b&gt;, and longer' in words
    assert '…")' in words


def test_only_a_request_that_came_back_can_be_sent_again() -> None:
    (handed_back,) = say(rejected(RejectionReason.HANDED_BACK, START))
    (by_api,) = say(rejected(RejectionReason.API, START, "prompt is <empty>"))
    assert handed_back.blocks[1]["elements"][0]["value"] == "r1"
    assert len(by_api.blocks) == 1


NOT_ALL = "<@U0ANA> Your request goes to the agent, but not all that belongs to it:\n• "
OVER_LIMIT = RequestRefused("U0ANA", Refusal.TOO_MANY, RequestKind.START, "Fix <it>", 5, 1_700_000_040)
LIMITED = OutageStarted(Problem.RATE_LIMITED, "asks to wait", "100 <an> hour", 1_700_000_040, waiting=START)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (rejected(RejectionReason.API, START, "prompt is <empty>"), [">prompt is &lt;empty&gt;"]),
        (CardNotPosted("U0ANA", "channel_not_found"), ["`/invite` <@U0BOT>", ">Fix it"]),
        (CardNotPosted("U0ANA", "restricted_action"), ["restricted_action"]),
        (CardNotPosted("U0ANA", "thread_not_found"), ["the thread is gone", ">Fix it"]),
        (ContextCut("U0ANA", ("a&b.png",)), [f"{NOT_ALL}Only a link, not the content: a&amp;b.png."]),
        (
            ContextCut("U0ANA", name_only=("<c>.pdf", "")),
            [NOT_ALL, "Neither content nor link: &lt;c&gt;.pdf, a file. Reply with what"],
        ),
        (ContextCut("U0ANA", thread_unread=True), [NOT_ALL, "Slack didn't give me its messages. Reply with what matt"]),
        (ReplyNotFullySent("U0ANA", words_sent=False, file_count=3), ["Nothing was sent: I can't pass on what you"]),
        (ReplyNotFullySent("U0ANA", words_sent=False), ["your reply has no words for the agent. Reply with what"]),
        (
            OVER_LIMIT,
            [
                "No job was started: you've reached the hourly limit (5).",
                "Please try again after <!date^1700000040^{time}|22:14 UTC>.\nYou wrote:\n>Fix &lt;it&gt;",
            ],
        ),
        (
            LIMITED,
            ["hourly limit is used up, at least until <!date^1700000040^{time}|22:14 UTC>.", ">100 &lt;an&gt; hour"],
        ),
    ],
)
def test_people_are_told_what_happened_and_what_to_do(message: NoticeContent, words: list[str]) -> None:
    text = said(message)
    assert [each for each in words if each not in text] == []


def test_an_outage_claims_nothing_else() -> None:
    assert "can't reach" not in said(LIMITED)
    assert "limit" not in said(replace(LIMITED, problem=Problem.BUSY))
    assert "until" not in said(replace(LIMITED, until=None))


def test_a_notice_in_doubt_is_repeated_with_a_remark() -> None:
    doubtful = PostNotDelivered("U0ANA", JobFinished(LINK), may_be_posted=True)
    (told,) = say(doubtful)
    assert told.text.startswith("I can't tell if this reached the job's thread:\n<@U0ANA> Done.")
    assert_sendable(told)
    (plain,) = say(doubtful, without_blocks=True)
    assert (plain.text, plain.blocks) == (told.text, ())
    (certain,) = say(replace(doubtful, may_be_posted=False))
    (posted,) = say(JobFinished(LINK))
    assert certain == posted
    assert "can't tell" not in posted.text


def test_a_huge_prompt_is_shown_whole_in_several_messages() -> None:
    prompt = "".join(f"<{n}>\n" for n in range(4_000))
    parts = say(PromptRequested("U0ANA", prompt))
    assert len(parts) > 1
    shown = "\n".join(block["text"]["text"] for part in parts for block in part.blocks[1:])
    assert [line.removeprefix(">") for line in shown.split("\n") if line != ">"] == [
        f"&lt;{n}&gt;" for n in range(4_000)
    ]


@pytest.mark.parametrize("why", Refusal)
def test_a_refused_person_learns_why_and_what_to_do(why: Refusal) -> None:
    """No braces are left, and it ends with a full stop."""
    words = said(RequestRefused("U0ANA", why, RequestKind.FOLLOW_UP))
    assert words.startswith("Your reply wasn't sent: ")
    assert words.endswith(".")
    assert "{" not in words.replace("{time}", "")


SEVERAL = replace(CONTEXT, several_projects=True)
MOMENT = "<!date^1700049600^{time}|12:00 UTC>"
NONE = FollowUpCounts()


def facts_of(thread: Thread, context: MessageContext = CONTEXT, follow_ups: FollowUpCounts = NONE) -> list[str]:
    """The small print."""
    (block,) = (block for block in card(thread, context, follow_ups).blocks if block["type"] == "context")
    return [element["text"] for element in block["elements"]]


def labels_of(thread: Thread) -> list[str]:
    """The buttons of a card, without the menu."""
    *others, row = card(thread, CONTEXT).blocks
    buttons = [*(button for block in others for button in block.get("actions", ())), *row["elements"][:-1]]
    return [button["text"]["text"] for button in buttons]


def menu_of(thread: Thread) -> list[str]:
    """The labels of its menu."""
    return [option["text"]["text"] for option in card(thread, CONTEXT).blocks[-1]["elements"][-1]["options"]]


@pytest.mark.parametrize("reason", ProjectReason)
def test_with_several_projects_the_card_names_the_project_and_why(reason: ProjectReason) -> None:
    """With a single project there is nothing to show."""
    thread = replace(THREAD, options=ThreadOptions(project_reason=reason))
    assert facts_of(thread, SEVERAL)[0].startswith("Project: guides (")
    assert not any(fact.startswith("Project") for fact in facts_of(thread))


def test_a_job_waits_for_the_choice_of_its_project() -> None:
    """Nothing else delays it."""
    undecided = card(replace(THREAD, project=""), SEVERAL)
    assert undecided.text.startswith("Waiting for <@U0ANA> to choose the project.")
    decided = replace(THREAD, options=ThreadOptions(project_reason=ProjectReason.CHOSEN))
    assert card(decided, SEVERAL).text.startswith("Waiting to be sent")


@pytest.mark.parametrize(
    ("mode", "edits_now", "agent", "told"),
    [
        (Mode.EDIT, False, AgentOptions(), "Model: m1"),
        (Mode.PLAN, False, AgentOptions(), "Mode: plan first, Model: m1"),
        (Mode.ASK, False, AgentOptions(), "Mode: only an answer, Model: m1"),
        (Mode.ASK, True, AgentOptions(Mode.ASK, "opus<5", "high"), "Model: opus&lt;5, Effort: high"),
    ],
)
def test_a_card_says_how_the_agent_works(mode: Mode, agent: AgentOptions, told: str, *, edits_now: bool) -> None:
    state = replace(thread_state(job=replace(job("active"), model="m1")), edits_now=edits_now)
    shown = replace(THREAD, options=ThreadOptions(agent=agent, mode=mode), state=state)
    assert told in facts_of(shown)


def test_the_card_of_an_answer_speaks_of_no_pull_request() -> None:
    answered = thread(job=job("completed"), progress=Progress(is_answer=True))
    assert card(answered, CONTEXT).text.startswith("Answered.\n")


def test_times_are_in_each_readers_zone_with_a_fallback() -> None:
    """Slack fills in the reader's own; clients that cannot do that show UTC."""
    asked, began = facts_of(thread(job=job("active"), work_began_at=NOON + 60))
    assert asked == "Asked: <!date^1700049600^{date_short_pretty} {time} ({ago})|2023-11-15 12:00 UTC>"
    assert began.startswith("At work since: <!date^1700049660^")


def test_the_duration_is_shown_once_the_job_ended() -> None:
    """If its start was never seen, only the end is shown."""
    ended = thread(job=job("completed"), work_began_at=NOON, work_ended_at=NOON + 754)
    assert facts_of(ended)[-1].endswith("2023-11-15 12:12 UTC> after 12 minutes")
    unseen = replace(ended, state=replace(ended.state, work=replace(ended.state.work, work_began_at=0.0)))
    assert facts_of(unseen)[-1].endswith("2023-11-15 12:12 UTC>")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (60, "1 minute"),
        (3_599, "59 minutes"),
        (7_380, "2 hours and 3 minutes"),
        (90_061, "1 day and 1 hour"),
    ],
)
def test_durations_are_written_in_words(seconds: float, words: str) -> None:
    """In its two largest units."""
    assert duration(MessageContext(), seconds) == words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (thread_state(job=job("active")), "Follow-ups: 2 sent, 1 waiting"),
        (thread_state(), "Follow-ups: 2 sent, 1 waiting for the job to begin"),
        (
            thread_state(job=job("active"), problem=Problem.RATE_LIMITED, problem_until=int(NOON)),
            f"Follow-ups: 2 sent, 1 waiting for the agent's hourly limit, at least until {MOMENT}",
        ),
        (
            thread_state(job=job("active"), problem=Problem.OUT_OF_REACH),
            "Follow-ups: 2 sent, 1 waiting for the agent to be back",
        ),
        (
            thread_state(problem=Problem.UNCERTAIN),
            "Follow-ups: 2 sent, 1 waiting until it's clear that this started",
        ),
    ],
)
def test_the_card_counts_waiting_follow_ups_and_explains_why(state: ThreadState, words: str) -> None:
    """In one sentence."""
    assert facts_of(replace(THREAD, state=state), CONTEXT, FollowUpCounts(2, 1))[-1] == words


def test_the_card_names_who_muted_it_and_what_that_means() -> None:
    """It can be undone in the menu."""
    muted = thread(job=job("active"), muted_by="U0BEN")
    assert facts_of(muted)[-1].startswith("Muted: by <@U0BEN>; replies aren't sent")
    assert "Unmute" in menu_of(muted)
    assert "Mute" not in menu_of(muted)
    assert "Follow up…" not in labels_of(muted)


def test_only_the_first_of_many_changed_pages_are_named() -> None:
    """The others are counted."""
    files = tuple(
        FileChange(path=f"p{number}.md", kind=ChangeKind.ADDED, title=f"Page {number}") for number in range(8)
    )
    known = Progress(changes=Changes(files=files, file_count=11))
    message = card(thread(job=job("completed", pr_link=LINK), progress=known), CONTEXT)
    assert "• Page 7, new\n• and 3 more" in message.blocks[2]["text"]["text"]
    assert "changes 11 files: Page 0, new, Page 1" in message.text
    assert "•" not in message.text
    counted = thread(job=job("completed", pr_link=LINK), progress=Progress(changes=Changes(file_count=3)))
    assert card(counted, CONTEXT).blocks[2]["text"]["text"] == "The pull request changes 3 files."


KEPT = Progress(partial_files=3)
FAILED = thread_state(job=job("failed"))
PENDING = Progress(pull_request=PullRequestState.PENDING)


@pytest.mark.parametrize(
    ("thread", "labels"),
    [
        (THREAD, ["Stop"]),
        (thread(job=job("active")), ["Stop", "Follow up…"]),
        (thread(job=job("active", pr_link=LINK)), ["Open the pull request", "Stop", "Follow up…"]),
        (thread(job=job("completed", pr_link=LINK)), ["Open the pull request", "Follow up…"]),
        (thread(job=job("completed", pr_link=LINK), progress=PENDING), ["Follow up…"]),
        (thread(job=job("completed")), ["Follow up…", "Retry"]),
        (thread(job=job("failed"), progress=KEPT), ["Follow up…", "Retry", "Discard"]),
        (
            thread(job=job("failed", pr_link=LINK), progress=KEPT),
            ["Open the pull request", "Follow up…", "Retry", "Discard"],
        ),
        (thread(job=job("active"), progress=KEPT), ["Stop", "Follow up…"]),
        (thread(job=job("failed"), progress=KEPT, problem=Problem.GONE), ["Retry"]),
        (thread(job=job("archived")), ["Retry"]),
        (thread(problem=Problem.REJECTED), ["Retry"]),
        (thread(problem=Problem.UNCERTAIN), ["Retry"]),
        (thread(problem=Problem.WITHDRAWN), []),
        (thread(job=job("active"), problem=Problem.GONE), []),
        (thread(job=job("active"), stopped_by="U0BEN"), ["Follow up…"]),
    ],
)
def test_available_actions_depend_on_the_state(thread: Thread, labels: list[str]) -> None:
    """Their labels are verbs; there are never more than five with the menu."""
    assert labels_of(thread) == labels


@pytest.mark.parametrize(
    ("thread", "number", "button", "words"),
    [
        (thread(job=job("failed"), progress=KEPT), 2, "discard_work", "thrown away"),
        (thread(job=job("active")), 0, "stop_job", "What it has pushed stays"),
        (thread(problem=Problem.UNCERTAIN), 0, "retry_job", "done twice"),
    ],
)
def test_what_cannot_be_undone_requires_confirmation(thread: Thread, number: int, button: str, words: str) -> None:
    """A certain failure can be retried at once."""
    shown = card(thread, CONTEXT).blocks[-1]["elements"][number]
    assert (shown["action_id"], shown["value"]) == (button, "th1")
    assert words in shown["confirm"]["text"]["text"]
    assert "confirm" not in card(replace(THREAD, state=FAILED), CONTEXT).blocks[-1]["elements"][1]


@pytest.mark.parametrize("item", MenuItem)
def test_menu_choices_are_parsed_back(item: MenuItem) -> None:
    """Values round-trip."""
    assert read_menu_value(menu_value(item, "th1")) == (item, "th1")
    assert len(menu_value(item, "f" * 32)) <= 150


def test_screen_readers_get_plain_sentences() -> None:
    """The plan as a count with the current step, without emoji or asterisks."""
    plan = (
        PlanStep(title="Read it", status=StepStatus.COMPLETED),
        PlanStep(title="Write", status=StepStatus.IN_PROGRESS),
        PlanStep(title="Check"),
    )
    progress = Progress(plan, "Editing a.md")
    text = card(thread(job=job("active", ref="main"), progress=progress, work_began_at=NOON), CONTEXT).text
    first, asked, facts = text.split("\n")
    assert first == (
        "Active: the agent is at work. 1 of 3 steps are done. At work on: Write. Next: Check. Now: Editing a.md."
    )
    assert asked == "<@U0ANA> asked: Fix the guides"
    assert facts.startswith("Branch: main. Asked: <!date^")
    assert not any(mark in text for mark in ("*", "_ ", ":white", "•"))


ANSWERED = JobReport(mode=Mode.ASK, pages_read=("docs/a.md", "b<!channel>"))
KEPT_WORDS = "What it changed in {} is kept. Reply here to go on from there, or write `!discard`."


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            JobFinished(LINK, again=True, report=JobReport(unchanged=True, reason="It is short already.")),
            f"Done. Nothing was changed:\n>It is short already.\nThe pull request is as it was: <{LINK}>",
        ),
        (JobFinished(report=JobReport(unchanged=True, reason="Nothing was changed.")), "Done. Nothing was changed."),
        (
            JobFinished(report=JobReport(unchanged=True, reason="Done. Nothing was changed. Try `Fix typos`.")),
            "Done. Nothing was changed:\n>Try `Fix typos`.",
        ),
        (
            JobFinished(report=JobReport(unchanged=True, reason="Nothing was changed that matters.")),
            "Done. Nothing was changed:\n>Nothing was changed that matters.",
        ),
        (
            JobFailed(report=JobReport(reason="The job failed: no credit")),
            "The job failed:\n>no credit\nReply here to try again, or start over with `/docs`.",
        ),
        (JobFinished(LINK, new=True, again=True, changed=True), f"Done. Here's a new pull request: <{LINK}>"),
        (
            JobFinished(LINK, new=True, report=JobReport(unchanged=False, reason="stopped by Ben")),
            f"Done. Here's the pull request: <{LINK}>\n>stopped by Ben",
        ),
        (
            JobFinished(LINK, again=True, report=JobReport(answer=Answer("It *is*.", "0a"))),
            f"Done. Check the pull request: <{LINK}>\nIt *is*.",
        ),
        (
            JobFailed(report=JobReport(reason="Out of credit.", partial_files=3)),
            f"The job failed:\n>Out of credit.\n{KEPT_WORDS.format('3 files')}",
        ),
        (
            JobFailed(report=JobReport(reason="The budget is used up.", question="May it go on?", partial_files=3)),
            "The job failed:\n>The budget is used up.\n"
            + KEPT_WORDS.format("3 files")
            + "\nThe agent asks:\n>May it go on?\nReply here to answer.",
        ),
        (
            JobFailed(LINK, report=JobReport(partial_files=1)),
            "The job failed without giving a reason.\n"
            + KEPT_WORDS.format("1 file")
            + f"\nWhat was done so far: <{LINK}>",
        ),
        (
            JobFinished(
                LINK,
                new=True,
                report=JobReport(
                    changes=Changes(files=(FileChange(path="a.md", added=1),), file_count=1, added=1, removed=0)
                ),
            ),
            f"Done. Here's the pull request: <{LINK}>\n1 file changed (+1).",
        ),
        (QuestionAsked("Which?"), "The agent asks:\n>Which?\nReply here to answer."),
        (
            JobFinished(report=replace(ANSWERED, answer=Answer("It *is*.", "0a"), unchanged=True)),
            "Here's the answer.\nPages read: docs/a.md, b&lt;!channel&gt;\nIt *is*.",
        ),
        (
            JobFinished(report=JobReport(mode=Mode.ASK, reason="There is no such page.", unchanged=True)),
            "The agent has no answer:\n>There is no such page.",
        ),
        (JobFinished(report=JobReport(mode=Mode.ASK, unchanged=True)), "The agent has no answer."),
    ],
)
def test_the_details_of_an_end_are_shown(message: NoticeContent, told: str) -> None:
    assert said(message) == f"<@U0ANA> {told}"


def test_a_card_shows_the_next_steps_of_a_long_plan() -> None:
    done = [StepStatus.COMPLETED] * 15 + [StepStatus.PENDING] * 5
    plan = tuple(PlanStep(title=f"Step {number}", status=status) for number, status in enumerate(done))
    text = state_line(thread_state(job=job("active"), progress=Progress(plan)), CONTEXT)
    assert "Step 15" in text
    assert "Step 5" not in text
    assert "_15 of 20 steps done_" in text


@pytest.mark.parametrize("end", list(ProposalEnd))
def test_a_press_that_comes_too_late_is_told_who_was_first(end: ProposalEnd) -> None:
    before = thread(proposal_id="p1", proposal_end=end, proposal_end_by="U0BEN")
    made = ProposalPressed("U0ANA", end).tell(CONTEXT, before).words
    named = end in {ProposalEnd.STARTED, ProposalEnd.DROPPED, ProposalEnd.STOPPED}
    assert ("<@U0BEN>" in made, "somebody" in made) == (named, end is ProposalEnd.REVISED)


def test_the_post_of_an_outdated_plan_has_no_buttons_while_a_newer_one_is_being_started() -> None:
    newer = thread(proposal_id="p2", proposal_end=ProposalEnd.STARTED, proposal_asked=True)
    shown = [bool(ProposalMade(each, None).tell(CONTEXT, newer).buttons) for each in ("p1", "p2")]
    assert shown == [False, True], "whether it is started is not known yet"


def test_the_person_who_stopped_a_job_is_named_once_apart_from_the_reason() -> None:
    """The one mention is that of the requester."""
    report = JobReport(reason="Stopped in the middle.")
    made = said(JobStopped("U0BEN", report=report))
    stopped = "<@U0ANA> Your job was stopped; the card says by whom:\n>Stopped in the middle.\n"
    assert made.startswith(f"{stopped}There's no pull request.")
    told = JobReport(reason="stopped by Ana")
    for report in (JobReport(), told):
        assert said(JobStopped("U0ANA", report=report)).startswith("Stopped by <@U0ANA>.\nThere's no pull request.")
    told = JobReport(reason="stopped by Ana, after the change had been pushed")
    assert said(JobStopped("U0ANA", report=told)).startswith("Stopped by <@U0ANA>:\n>after the change had been pushed")
