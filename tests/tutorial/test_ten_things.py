"""Ten things that Pagehand does, in the order in which a newcomer would ask for them. Read it from top to bottom.

Ana types, replies, edits and presses; `job_api` is the agent's side; `card`, `said` and
`reaction` are what people see.
"""

from support.worlds.tutorial_world import TutorialWorld

from bot.errors import JobApiUncertain, JobApiUnreachable

LINK = "https://git.example/docs/pull/7"


async def test_1_a_command_starts_a_job(pagehand: TutorialWorld) -> None:
    answer = await pagehand.types("/docs Fix the guides")

    assert answer == "Got it."
    assert pagehand.job_api.created == ["Fix the guides"]
    assert len(pagehand.said) == 1
    assert pagehand.said[0].startswith("Started.")


async def test_2_the_card_shows_the_request_and_its_state(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    assert "asked: Fix the guides" in pagehand.card
    assert "Active: the agent is at work" in pagehand.card

    pagehand.job_api.show("job-1", "failed")
    await pagehand.later()
    assert "Failed" in pagehand.card


async def test_3_a_reply_in_the_thread_steers_the_job(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")

    reply = await pagehand.replies("Leave the changelog alone")
    await pagehand.later()
    assert pagehand.job_api.messages["job-1"] == ["Leave the changelog alone"]
    assert pagehand.reaction(reply) == "white_check_mark"


async def test_4_a_reply_that_starts_with_two_slashes_stays_between_people(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")

    await pagehand.replies("// Ben, what do you think?")
    await pagehand.later()
    assert pagehand.job_api.messages == {}


async def test_5_a_reply_edited_before_sending_is_sent_as_edited(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")

    reply = await pagehand.replies("Use British speling")
    await pagehand.edits(reply, "Use British speling", "Use British spelling")
    await pagehand.later()
    assert pagehand.job_api.messages["job-1"] == ["Use British spelling"]


async def test_6_the_end_has_the_link_to_the_pull_request(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")

    pagehand.job_api.show("job-1", "completed", LINK)
    await pagehand.later()
    assert "Finished with a pull request" in pagehand.card
    assert LINK in pagehand.said[-1]
    assert "<@UANA>" in pagehand.said[-1], "the requester is mentioned"


async def test_7_a_reply_after_the_end_resumes_the_job(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    pagehand.job_api.show("job-1", "completed", LINK)
    await pagehand.later()

    await pagehand.replies("And the FAQ, please")
    await pagehand.later()
    assert pagehand.job_api.messages["job-1"] == ["And the FAQ, please"]
    assert len(pagehand.job_api.created) == 1, "it is the same job"
    assert "Active: the agent is at work" in pagehand.card


async def test_8_while_the_job_api_is_away_nothing_is_lost(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    pagehand.job_api.faults = [JobApiUnreachable("no route")] * 1_000

    await pagehand.replies("Leave the changelog alone")
    await pagehand.later(300)
    assert pagehand.job_api.messages == {}
    assert "can't reach the agent" in pagehand.said[-1]

    pagehand.job_api.faults = []
    await pagehand.later(120)
    assert pagehand.job_api.messages["job-1"] == ["Leave the changelog alone"]
    assert "The agent is back." in pagehand.said[-1]


async def test_9_a_request_in_doubt_is_sent_again_only_on_confirmation(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    pagehand.job_api.after = [JobApiUncertain("the connection broke before the answer came")]

    reply = await pagehand.replies("Leave the changelog alone")
    await pagehand.later()
    assert pagehand.job_api.messages["job-1"] == ["Leave the changelog alone"], "it did arrive, but that is unknown"
    assert "I can't tell if your follow-up" in pagehand.said[-1]
    assert pagehand.reaction(reply) == "warning"

    await pagehand.presses("Send again")
    await pagehand.later()
    assert pagehand.job_api.messages["job-1"] == ["Leave the changelog alone"] * 2
    assert pagehand.reaction(reply) == "white_check_mark"


async def test_10_a_crash_loses_nothing_and_repeats_nothing(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    await pagehand.replies("Leave the changelog alone")

    pagehand.crash()
    pagehand.job_api.show("job-1", "completed", LINK)
    await pagehand.later(120)
    assert pagehand.job_api.created == ["Fix the guides"]
    assert pagehand.job_api.messages["job-1"] == ["Leave the changelog alone"]
    assert len(set(pagehand.said)) == len(pagehand.said), "nothing is said twice"
