"""A question during a job: shown with the job, answered by its next message, and never lost."""

import asyncio
from pathlib import Path

from support.fakes.job_ports import ScriptedEditor
from support.worlds.executor_world import ExecutorWorld, executing
from support.worlds.jobserver_world import until

from bot.jobapi.models import AgentJob, FieldKind, QuestionField, QuestionOption, Status
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.store.records import Question

PORT = QuestionField(title="Port", kind=FieldKind.CHOICE, options=(QuestionOption(label="80"),))
ASKED = Question("Which port?", (PORT,))


async def asks(task: EditTask, progress: EditProgress) -> EditResult:
    """Asks once, and again if it gets no answer."""
    reply = await progress.ask(ASKED, lambda text: text.isdigit())
    if reply is None:
        return EditResult("Not told.", question=ASKED.text, question_fields=ASKED.fields)
    (task.workspace.copy / "port.md").write_text(reply)
    return EditResult(f"Port {reply}.")


async def question_of(world: ExecutorWorld, job_id: str) -> AgentJob:
    """Waits until the job shows a question, and returns it."""

    async def check() -> AgentJob | None:
        job = await world.store.get("docs", job_id)
        return job if job.details and job.details.question else None

    return await until(check)


def states(world: ExecutorWorld) -> list[str]:
    return [task.prompt for task in world.editor.tasks]


async def test_the_next_message_answers_the_question_and_is_no_instruction(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        job = await question_of(world, started.id)
        assert job.status is Status.ACTIVE
        assert job.details is not None
        assert (job.details.question, job.details.question_fields) == ("Which port?", (PORT,))
        answered = await world.done("443", started.id)
        assert (answered.status, states(world)) == (Status.COMPLETED, ["Describe the port"])
        assert answered.details is not None
        assert (answered.details.summary, answered.details.question) == ("Port 443.", None)
        again = await world.submit("Once more", started.id)
        assert (await question_of(world, again.id)).status is Status.ACTIVE
        await world.done("80", started.id)
        assert states(world) == ["Describe the port", "Once more"]
        assert [earlier.prompt for earlier in world.editor.tasks[1].conversation] == ["Describe the port", "443"]


async def test_a_message_that_is_no_answer_is_the_next_instruction(tmp_path: Path) -> None:
    """The agent continues without an answer; no message is swallowed."""
    async with executing(tmp_path, ScriptedEditor(asks), question_time_limit=60.0) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.submit("Rather describe the lamp", started.id)
        await until_asked(world, 2)
        done = await world.done("8", started.id)
        assert states(world) == ["Describe the port", "Rather describe the lamp"]
        assert done.details is not None
        assert done.details.summary == "Port 8."


async def test_a_job_eventually_ends_with_its_unanswered_question(tmp_path: Path) -> None:
    """A later answer is an instruction, and continues in the same session."""
    async with executing(tmp_path, ScriptedEditor(asks), question_time_limit=0.05) as world:
        job = await world.done("Describe the port")
        assert job.status is Status.COMPLETED
        assert job.details is not None
        assert (job.details.question, job.details.question_fields) == ("Which port?", (PORT,))
        await world.done("443", job.id)
        assert states(world) == ["Describe the port", "443"]


async def test_an_answer_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """It was given to an agent that was killed: the next one asks again and gets it at once."""
    taken = asyncio.Event()

    async def asks_and_hangs(task: EditTask, progress: EditProgress) -> EditResult:
        result = await asks(task, progress)
        if not taken.is_set():
            taken.set()
            await asyncio.get_running_loop().create_future()
        return result

    async with executing(tmp_path, ScriptedEditor(asks_and_hangs)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.submit("443", started.id)
        await taken.wait()
        await world.restarted()
        job = await world.ended(started.id)
        assert job.details is not None
        assert job.details.summary == "Port 443."
        assert states(world) == ["Describe the port", "Describe the port"]


async def test_an_open_question_survives_a_restart(tmp_path: Path) -> None:
    """A reader meanwhile is not asked twice."""
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.runner.stop()
        job = await world.store.get("docs", started.id)
        assert job.details is not None
        assert job.details.question == "Which port?"
        await world.restarted()
        await until_asked(world, 2)
        assert (await world.done("80", started.id)).details is not None


async def test_a_job_stopped_during_a_question_ends(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        cancelled = await world.store.cancel("docs", started.id)
        assert cancelled.running is not None
        world.runner.interrupt(cancelled.running)
        job = await world.ended(started.id)
        assert job.details is not None
        assert job.details.question is None


async def until_asked(world: ExecutorWorld, tasks: int) -> None:
    async def check() -> bool:
        return len(world.editor.tasks) >= tasks

    await until(check)
