"""Details of a job beyond the specification, in Slack: one message per end, and the requester, with the thread's
address.
"""

from collections.abc import AsyncIterator

import pytest
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.jobs.job import Answer, FailedCheck, JobReport
from bot.jobapi.models import (
    ChangeKind,
    Changes,
    CheckStatus,
    FileChange,
)
from bot.notices.answers import AnswerRequested
from bot.notices.job import JobFinished
from bot.notices.notice import Notice
from bot.slack.sending.conversations import SlackRequesters

LINK = "https://git.example/team/guides/pull/7"
REPORT = JobReport(
    answer=Answer("# Done\n\nI told <!channel> & **you**: [good.example](https://evil.example)", "0a", cut=True),
    reason="stopped by Ben <!here>",
    question="Which of them, <@U0ANA>?",
    unchanged=False,
    changes=Changes(
        files=(FileChange(path="a.md", kind=ChangeKind.ADDED, added=3, removed=0, title="Getting <started>"),),
        file_count=13,
        added=40,
        removed=2,
    ),
    failed_checks=(
        FailedCheck(name="links", status=CheckStatus.FAILED, problems=("a.md:3 leads <nowhere>",), problem_count=4),
    ),
)


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world(names_within=2.0) as made:
        yield made


async def test_an_end_is_one_message_with_all_details(world: SlackWorld) -> None:
    thread = await world.posted()
    message = JobFinished(LINK, new=True, report=REPORT)
    await world.chat.post(thread, Notice(1, "th1/end", "th1", message, created_at=0.0))
    _, posted = world.workspace.channels.thread("docs", thread.ts or "")
    kinds = [block["type"] for block in posted.blocks or []]
    assert kinds == ["section", "markdown", "section", "section", "actions"]
    shown = f"{posted.text} {posted.blocks}"
    assert not any(each in shown for each in ("<!channel>", "<!here>", "<@U0ANA>", "[good.example](https://evil"))
    assert "13 files changed (+40 \N{MINUS SIGN}2)." in posted.text
    assert "Getting" not in shown, "the card has the list"
    assert "and 3 more" in posted.text
    labels = [element["text"]["text"] for element in (posted.blocks or [])[-1]["elements"]]
    assert labels == ["Open the pull request", "Show all"]


async def test_examples_are_buttons_that_show_the_full_prompt(world: SlackWorld) -> None:
    """They have their own row above the others; the workspace accepts them like Slack."""
    thread, prompts = await world.posted(), ('Replace "<a>" with "&"', "x" * 75)
    message = JobFinished(LINK, new=True, report=JobReport(examples=prompts))
    await world.chat.post(thread, Notice(1, "th1/end", "th1", message, created_at=0.0))
    _, posted = world.workspace.channels.thread("docs", thread.ts or "")
    *_, examples, others = [block["elements"] for block in posted.blocks or [] if block["type"] == "actions"]
    assert [each["text"]["text"] for each in examples] == list(prompts)
    assert [each["value"] for each in examples] == [f"{thread.id}/{prompt}" for prompt in prompts]
    assert [each["text"]["text"] for each in others] == ["Open the pull request"]


async def test_a_long_answer_reaches_one_person_in_several_messages(world: SlackWorld) -> None:
    thread = await world.posted()
    told = AnswerRequested(world.id("ben"), "0a", text="# Title\n\n" + "A line of `words`.\n" * 1_000)
    await world.chat.tell(thread, Notice(1, "th1/click", "th1", told, created_at=0.0))
    seen = list(world.workspace.state.ephemerals(world.workspace.channels["docs"], world.id("ben")))
    assert len(seen) == 3
    assert "".join(str(message.blocks) for message in seen).count("A line of") == 1_000


async def test_the_requester_has_a_name_an_id_and_the_threads_permalink(world: SlackWorld) -> None:
    thread, ana = await world.posted(), world.id("ana")
    found = await SlackRequesters(world.permalinks, world.people).requester(ana, thread.channel_id, thread.ts or "")
    assert (found.name, found.id) == ("ana", ana)
    assert found.url is not None
    assert found.url.endswith(f"/archives/{thread.channel_id}/p{(thread.ts or '').replace('.', '')}")
