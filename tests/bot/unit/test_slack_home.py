"""App Home: what a person sees there, and that Slack accepts it with any text by others."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.any_json import any_json
from support.worlds.thread_states import thread_state

from bot.domain.commands import MAX_NAME, ThreadWord
from bot.domain.context import ContextNotes, ContextText
from bot.domain.jobs.job import Problem
from bot.domain.people import HomeContent, Preference
from bot.domain.projects import MOST_PROJECTS
from bot.domain.requests.request import Request, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Planning, Thread, ThreadState, can_be_retried, waits_for_person
from bot.jobapi.models import Job, Mode
from bot.notices.answers import CardNotPosted
from bot.notices.notice import Notice
from bot.runtime.secrets import SecretKind
from bot.slack.receiving.payloads.interactions import ViewPayload
from bot.slack.rendering.ephemeral_texts import help_text
from bot.slack.rendering.home import HOME_EXAMPLE, HOME_RETRY, HOME_START, home_view
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import (
    CONTEXT_WIDTH,
    MAX_CONTEXT_INPUTS,
    ContextScope,
    Drafted,
    ModalPlace,
    ShownContext,
    View,
    context_fields,
    follow_up_modal,
    hand_over_modal,
    new_job_modal,
    parse_place,
    settings_modal,
)
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import shorten_plain, width
from bot.workspace.wire.views import checked_view

CONTEXT = MessageContext()


def thread(thread_id: str = "th1", prompt: str = "Fix the guides", **state: Any) -> Thread:
    return Thread(thread_id, "T1", "C1", "U1", prompt, "p", 0.0, "1.1", "1.1", state=thread_state(**state))


def request(kind: RequestKind, **changes: Any) -> Request:
    made = Request("r1", "th1", kind, "k1", "U1", "Fix it", "", 0.0, state=RequestState.AWAITING_PERSON)
    return replace(made, **changes)


def shown(content: HomeContent, links: dict[str, str] | None = None, projects: tuple[str, ...] = ()) -> str:
    view = home_view(content, links or {}, CONTEXT, projects=projects)
    checked_view(view, "home")
    return str(view["blocks"])


def test_a_person_without_jobs_sees_how_to_begin() -> None:
    """There is an example that can be pressed, and a button to start."""
    blocks = shown(HomeContent("U1"))
    assert "You haven't asked for a job yet" in blocks
    assert "`/docs` Fix the typos" in blocks
    assert HOME_EXAMPLE in blocks
    assert HOME_START in blocks
    older = shown(HomeContent("U1", page=2))
    assert "There are no older jobs." in older
    assert HOME_EXAMPLE not in older + shown(HomeContent("U1", jobs=[thread()]))


def test_a_retry_is_offered_only_where_it_helps() -> None:
    """Not while a job is running."""
    again = [
        thread(job=Job("j", "failed")),
        thread(job=Job("j", "completed")),
        thread(problem=Problem.UNCERTAIN),
        thread(problem=Problem.REJECTED),
        thread(problem=Problem.CANNOT_POST),
    ]
    not_again = [
        thread(),
        thread(problem=Problem.BUSY),
        thread(job=Job("j", "active")),
        thread(job=Job("j", "completed", "https://git.example/pull/1")),
    ]
    assert all(can_be_retried(each) for each in again)
    assert not any(can_be_retried(each) for each in not_again)
    blocks = shown(HomeContent("U1", jobs=[replace(again[0], id="th9")]))
    assert f"'action_id': '{HOME_RETRY}', 'value': 'th9'" in blocks


def test_questions_for_this_person_come_first() -> None:
    """The agent's questions, with a way to answer them."""
    asked = thread(job=Job("j", "active"), question="digest")
    assert waits_for_person(asked)
    assert not waits_for_person(thread(job=Job("j", "archived"), question="digest"))
    assert not waits_for_person(thread(job=Job("j", "active")))
    blocks = shown(HomeContent("U1", jobs=[asked], waiting=[asked]), {"th1": "https://a.example/t"})
    assert blocks.index("Waiting for you") < blocks.index("Your jobs")
    assert "• Fix the guides: the agent has a question · <https://a.example/t|answer it>" in blocks
    assert "• …" in shown(HomeContent("U1", waiting=[asked] * 9))
    planned = replace(asked, state=ThreadState(job=Job("j", "completed"), planning=Planning("plan-1")))
    blocks = shown(HomeContent("U1", waiting=[planned]), {"th1": "https://a.example/t"})
    assert "• Fix the guides: a plan waits for *Start* · <https://a.example/t|see the plan>" in blocks
    start = request(RequestKind.START)
    undecided = shown(HomeContent("U1", held=[(start, asked), (start, replace(asked, channel_id="D1"))]))
    assert "• Fix the guides: which project is it for? I asked you in <#C1>" in undecided
    assert "I asked you in our direct messages" in undecided


def test_what_waits_for_this_person_can_be_answered_here() -> None:
    """Each request with its own question and buttons; lines that were written together share one."""
    follow_up, job = RequestKind.FOLLOW_UP, thread()
    held = {
        "Send this to the agent?": request(follow_up),
        "You wrote this while I was away.": request(follow_up, problem="late"),
        "The job was stopped before this was sent.": request(follow_up, problem="stopped"),
        "Stop it now?": request(RequestKind.STOP, problem="late"),
        "You wrote `!mute`": request(RequestKind.MUTE, problem="late"),
    }
    for question, each in held.items():
        blocks = shown(HomeContent("U1", held=[(each, job)]), {"th1": "https://a.example/t"})
        assert question in blocks
        assert "<https://a.example/t|thread>" in blocks
        assert all(f"'action_id': '{action}', 'value': 'r1'" in blocks for action in ("send_held", "discard_held"))
    lines = [
        request(follow_up, id=f"r{number}", way_in=WayIn.DIRECT_MESSAGE, written_at=f"1700000000.00000{number}")
        for number in range(3)
    ]
    blocks = shown(HomeContent("U1", held=[(line, job) for line in lines]))
    assert blocks.count("Is this a new job") == 1


def test_home_has_defaults() -> None:
    """The project only if there are several; one that no longer exists is not shown."""
    assert "Project" not in shown(HomeContent("U1"), projects=("guides",))
    several = ("guides", "api")
    assert "Project: api" in shown(HomeContent("U1", preference=Preference("api", quiet=True)), projects=several)
    assert "Project: api" in shown(HomeContent("U1", preference=Preference("API")), projects=several)
    assert "nobody is mentioned" in shown(HomeContent("U1", preference=Preference("api", quiet=True)), projects=several)
    assert "by the channel or by words" in shown(HomeContent("U1", preference=Preference("gone")), projects=several)


@given(st.text(max_size=400), st.text(max_size=400), st.integers(0, 10))
def test_any_home_is_accepted_by_slack(prompt: str, words: str, jobs: int) -> None:
    """At most 100 blocks, and no text mentions anybody."""
    long = f"https://git.example/{'x' * 2_900}"
    state = thread("th1", prompt * 10 + "<!channel>", problem=Problem.FAULTY, problem_text=words * 20)
    finished = thread("th2", prompt, job=Job("j", words, long))
    content = HomeContent(
        person_id="U1",
        page=1,
        jobs=[replace(each, id=f"{each.id}/{n}") for n in range(5) for each in [state, finished][: jobs % 3]],
        has_older=True,
        waiting=[finished] * jobs,
        held=[
            asked
            for n in range(jobs)
            for asked in (
                (request(RequestKind.START, text=words), state),
                (request(RequestKind.FOLLOW_UP, id=f"r{n}", text=prompt, problem="late"), finished),
            )
        ],
        preference=Preference(words),
        updated_at=1.5,
    )
    links = {"th1": long, "th2": "https://a.example/" + "y" * 280}
    view = home_view(content, links, CONTEXT, projects=(words, "api"))
    checked_view(view, "home")
    assert len(view["blocks"]) <= 100
    assert "<!channel>" not in str(view)


TEXTS = st.text(max_size=60) | st.text(alphabet="😀a\n", max_size=40).map(lambda text: text * 200)
NAMES = st.lists(
    st.text(min_size=1, max_size=90).filter(lambda name: bool(shorten_plain(name, 75))), max_size=4, unique=True
)
JSON = any_json()


def inputs(view: View) -> dict[str, Any]:
    return {block["block_id"]: block["element"] for block in view["blocks"] if block["type"] == "input"}


@given(
    draft=TEXTS,
    projects=NAMES,
    quiet=st.booleans(),
    channel=st.sampled_from(["", "C1"]),
    mode=st.sampled_from(["", *Mode]),
    first=st.none() | st.booleans(),
)
def test_a_job_modal_is_accepted_by_slack(
    draft: str, projects: list[str], channel: str, mode: str, *, quiet: bool, first: bool | None
) -> None:
    """With any draft and project names."""
    drafted = Drafted(draft, Preference(projects[0] if projects else "gone", quiet))
    place = ModalPlace(channel, mode=mode, model="m" * MAX_NAME, effort="e" * MAX_NAME)
    view = new_job_modal(place, drafted, projects, plan_first=first)
    assert parse_place(view["private_metadata"]) == place
    assert ("plan" in inputs(view)) is (first is not None and mode != Mode.ASK)
    checked_view(view, "modal")
    checked_view(follow_up_modal(ModalPlace(thread_id="th1"), drafted), "modal")
    checked_view(settings_modal(drafted.preference, projects), "modal")
    assert ("project" in inputs(view)) is (len(projects) > 1)
    assert ("channel" in inputs(view)) is (not channel)
    assert view["notify_on_close"] is True


@given(
    text=TEXTS,
    scope=st.sampled_from(ContextScope),
    has_thread=st.booleans(),
    masked=st.lists(st.sampled_from(SecretKind), unique=True),
    names=NAMES,
)
def test_a_message_modal_is_accepted_by_slack(
    text: str, scope: ContextScope, masked: list[SecretKind], names: list[str], *, has_thread: bool
) -> None:
    """With any message and files."""
    notes = ContextNotes(words_left_out=has_thread)
    context = ShownContext(ContextText(text, notes, tuple(masked)), has_thread=has_thread, unreadable=True)
    place = ModalPlace("C1", "1.1", "1.2", scope=scope, files=tuple("F" * len(names)), file_names=tuple(names))
    view = hand_over_modal(place, Drafted(), names, context)
    checked_view(view, "modal")
    assert ("scope" in inputs(view)) is has_thread


def test_inputs_keep_their_ids_and_start_with_the_given_values() -> None:
    """Typed text is sent at once, and defaults are preselected."""
    view = new_job_modal(ModalPlace("C1"), Drafted("Fix it", Preference("api", quiet=True)), ("guides", "api"))
    prompt = next(block for block in view["blocks"] if block.get("block_id") == "prompt")
    assert prompt["dispatch_action"] is True
    assert prompt["element"]["initial_value"] == "Fix it"
    assert "max_length" not in prompt["element"]
    assert inputs(view)["project"]["initial_option"]["value"] == "api"
    assert inputs(view)["telling"]["initial_option"]["value"] == "quiet"
    other = new_job_modal(ModalPlace("C1"), Drafted("", Preference("gone")), ("guides", "api"))
    assert "initial_option" not in inputs(other)["project"]
    assert "initial_value" not in inputs(other)["prompt"]


def test_a_project_is_matched_in_any_case_and_an_unknown_one_reported() -> None:
    """The error is at the choice, or in its place if there is only one project."""

    def job(said: str, *projects: str) -> View:
        return new_job_modal(ModalPlace("C1"), Drafted("", Preference(said)), projects)

    assert inputs(job("API", "guides", "Api"))["project"]["initial_option"]["value"] == "Api"
    view = job("a*pi", "guides", "api")
    (block,) = [block for block in view["blocks"] if block.get("block_id") == "project"]
    assert "initial_option" not in block["element"]
    assert block["hint"]["text"] == "There is no project called a*pi. Please choose one of these."
    said = "There is no project called a&lt;pi. The job is for the only one there is."
    assert said in str(job("a<pi", "guides")["blocks"])
    assert "no project" not in str((job("Guides", "guides"), job("", "guides"), job("", "guides", "api")))
    names = tuple(f"project-{number}" for number in range(MOST_PROJECTS))
    view = job(names[-1].upper(), *names)
    assert inputs(view)["project"]["initial_option"]["value"] == names[-1]
    assert len(inputs(view)["project"]["options"]) == MOST_PROJECTS


@given(st.text(max_size=200) | st.text(alphabet="a😀", min_size=2_990, max_size=3_010))
def test_a_cut_text_fits_slacks_limit(text: str) -> None:
    """Counted as Slack counts; text that fits is unchanged."""
    for limit in (10, 75, 3_000):
        shown = shorten_plain(text, limit)
        assert width(shown) <= limit
        assert shown.removesuffix("…") in shorten_plain(text, 10_000)


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r"), max_size=400), max_size=30))
def test_a_long_context_is_shown_in_several_inputs(lines: list[str]) -> None:
    """Joined, they are the text again, except for breaks in lines that are too long for one."""
    text = "\n".join(lines)[:CONTEXT_WIDTH]
    fields = context_fields(text)
    assert all(width(field) <= 3_000 for field in fields)
    if width(text) <= CONTEXT_WIDTH:
        assert "".join(fields).replace("\n", "") == text.replace("\n", "")
    if text and all(len(line) < 400 for line in text.split("\n")):
        joined = "\n".join(fields)
        assert joined == text or len(fields) == MAX_CONTEXT_INPUTS


@pytest.mark.parametrize("text", ["x" * 15_000, "y\n" * 7_500, ("z" * 1_600 + "\n") * 9, "😀" * 7_500, "\n" * 15_000])
def test_all_inputs_together_have_room_for_the_longest_context(text: str) -> None:
    """Wherever its lines end."""
    kept = "".join(context_fields(text[:CONTEXT_WIDTH])).replace("\n", "")
    assert kept == text[:CONTEXT_WIDTH].replace("\n", "")


@given(
    st.builds(ModalPlace, *[st.text(max_size=30)] * 5, *[st.lists(st.text(max_size=40), max_size=20).map(tuple)] * 2)
)
def test_a_place_round_trips(place: ModalPlace) -> None:
    """File names are left out if they do not fit."""
    text = place.encoded()
    assert len(text) <= 3_000
    read = parse_place(text)
    assert read in {place, ModalPlace(**{**place.__dict__, "file_names": ()})}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"channel_id": 5, "files": [1, "F1"], "other": "x"}', "[" * 50_000]
)
def test_an_invalid_place_is_empty(text: str) -> None:
    """Slack returns what it was given; anything else is harmless."""
    read = parse_place(text)
    assert read.channel_id == ""
    assert read.files in {(), ("F1",)}


@given(JSON)
def test_a_submission_of_any_shape_is_read(body: Any) -> None:
    """Missing values are empty."""
    for shape in (
        body,
        {"view": body},
        {"view": {"state": body, "blocks": body}},
        {"view": {"state": {"values": body}}},
    ):
        view = ViewPayload.read(shape).view
        assert isinstance(view.id, str)
        assert isinstance(view.place, ModalPlace)
        assert isinstance(view.text("prompt") + view.choice("scope") + view.channel("channel"), str)
        assert list(view.texts("context/")) == []


ANSWERED = MessageContext(command="/pa<g>es", bot_user_id="U0BOT")
MAX_EPHEMERAL = 3_000


def test_the_help_lists_every_way_in_and_control_word() -> None:
    text = help_text(ANSWERED)
    assert len(text) < MAX_EPHEMERAL
    for told in ("`/pa&lt;g&gt;es ", "<@U0BOT>", "direct message", "`project:NAME`", "`quiet`", "`//`", ":x:"):
        assert told in text
    for word in ThreadWord:
        assert f"`!{word}`" in text


def test_a_direct_message_between_people_cannot_have_a_job() -> None:
    thread = Thread("th1", "T1", "D0BOTH", "U1", "Fix <it>", "", 0.0)
    text = messages(thread, Notice(1, "k", "th1", CardNotPosted("U1", "channel_not_found"), 0.0), ANSWERED)[0].text
    assert "No job was started: I'm not part of this direct message." in text
    assert "in a channel" in text
    assert "/invite" not in text
    assert ">Fix &lt;it&gt;" in text
