"""App Home: what a person sees there, and that Slack accepts it with any text by others."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.worlds.thread_states import thread_state

from bot.domain.jobs.job import Problem
from bot.domain.people.home import HomeContent, PartHealth, can_be_retried, waits_for_person
from bot.domain.people.members import Preference
from bot.domain.requests.request import Request, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Job
from bot.slack.rendering.home import HOME_EXAMPLE, HOME_NEWER, HOME_OLDER, HOME_RETRY, HOME_START, home_view
from bot.slack.rendering.message_context import MessageContext
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
    assert "How Pagehand is" not in blocks
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


def test_home_has_pages() -> None:
    """Each links to its neighbours."""
    first = shown(HomeContent("U1", jobs=[thread()], has_older=True))
    assert f"'action_id': '{HOME_OLDER}', 'value': '1'" in first
    assert HOME_NEWER not in first
    last = shown(HomeContent("U1", page=3, jobs=[thread()]))
    assert f"'action_id': '{HOME_NEWER}', 'value': '2'" in last
    assert HOME_OLDER not in last


def test_home_has_defaults() -> None:
    """The project only if there are several; one that no longer exists is not shown."""
    assert "Project" not in shown(HomeContent("U1"), projects=("guides",))
    several = ("guides", "api")
    assert "Project: api" in shown(HomeContent("U1", preference=Preference("api", quiet=True)), projects=several)
    assert "Project: api" in shown(HomeContent("U1", preference=Preference("API")), projects=several)
    assert "nobody is mentioned" in shown(HomeContent("U1", preference=Preference("api", quiet=True)), projects=several)
    assert "by the channel or by words" in shown(HomeContent("U1", preference=Preference("gone")), projects=several)


def test_administrators_see_pagehands_health() -> None:
    """In one line, or a list of faults."""
    parts = [PartHealth("job poller", 400.0, "status <500>"), PartHealth("<x>", 5.0, "y")]
    blocks = shown(HomeContent("U1", failing=parts))
    assert ":warning: Following jobs: failing for 6 minutes (status &lt;500&gt;)" in blocks
    assert ":warning: &lt;x&gt;: failing since a moment ago (y)" in blocks
    assert "All well" not in blocks
    assert ":white_check_mark: All well." in shown(HomeContent("U1", failing=[]))
    assert "All well" not in shown(HomeContent("U1", failing=None))


@given(st.text(max_size=400), st.text(max_size=400), st.integers(0, 10), st.integers(0, 60))
def test_any_home_is_accepted_by_slack(prompt: str, words: str, jobs: int, parts: int) -> None:
    """At most 100 blocks, and no text mentions anybody."""
    long = f"https://git.example/{'x' * 2_900}"
    state = thread("th1", prompt * 10 + "<!channel>", problem=Problem.FAULTY, problem_text=words * 20)
    finished = thread("th2", prompt, job=Job("j", words, long))
    content = HomeContent(
        person_id="U1",
        page=1,
        jobs=[state, finished][: jobs % 3] * 5,
        has_older=True,
        waiting=[finished] * jobs,
        held=[
            (request(RequestKind.START, text=words), state),
            (request(RequestKind.FOLLOW_UP, text=prompt, problem="late"), finished),
        ]
        * jobs,
        preference=Preference(words),
        failing=[PartHealth(words, 1.0, prompt * 5)] * parts,
        updated_at=1.5,
    )
    links = {"th1": long, "th2": "https://a.example/" + "y" * 280}
    view = home_view(content, links, CONTEXT, projects=(words, "api"))
    checked_view(view, "home")
    assert len(view["blocks"]) <= 100
    assert "<!channel>" not in str(view)
