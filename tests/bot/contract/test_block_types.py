"""All that Pagehand shows in Slack has the shapes that Slack's own types (@slack/types) give, as TypeScript checks."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from support.agents.packages import NotInstalled, Package, installed_folder, program_folder
from support.worlds.any_notices import KINDS, messages_of
from support.worlds.store_world import a_thread
from support.worlds.thread_states import thread_state

from bot.codehosts.pull_request import Check, CheckOutcome, Found, Preview, PullRequest, Review, Verdict
from bot.domain.context import ContextNotes, ContextText
from bot.domain.jobs.job import Problem, Progress, QuestionField
from bot.domain.people import HomeContent, Preference
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.jobapi.models import ChangeKind, Changes, FieldKind, FileChange, Job, PlanStep, StepStatus
from bot.notices.notice import CardChanged, Notice, ReactionChanged
from bot.slack.rendering.blocks import Block, RichBlock
from bot.slack.rendering.cards import card
from bot.slack.rendering.home import home_view
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import (
    ContextScope,
    Drafted,
    ModalPlace,
    ShownContext,
    View,
    answer_modal,
    follow_up_modal,
    hand_over_modal,
    message_modal,
    new_job_modal,
    settings_modal,
)
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import escape

pytestmark = pytest.mark.full
TYPES, COMPILER = Package("@slack/types", "3.2.0"), Package("typescript", "5.9.3", "tsc")
CONTEXT = MessageContext(command="/docs", admin="U0ADMIN", bot_user_id="U0BOT", several_projects=True)
LINK = "https://git.example/team/guides/pull/7"
TEXTS = st.sampled_from(["", "Fix it", LINK, "U0ANA", "<!channel> & more", "is_archived", "x" * 3_000])
PLAN = tuple(PlanStep(title=f"Step {status}", status=status) for status in StepStatus)
CHANGES = Changes(files=(FileChange(path="a.md", kind=ChangeKind.ADDED, title="A"),), file_count=1, added=1, removed=0)
PULL = PullRequest(
    number=7,
    link=LINK,
    head="a",
    title="Ports",
    checks=tuple(Check(name=outcome, outcome=outcome) for outcome in CheckOutcome),
    reviews=tuple(Review(author="rae", verdict=verdict) for verdict in Verdict),
    previews=(Preview(link="https://preview.example"),),
)
FIELDS = tuple(
    QuestionField(f"A {kind}", kind, ("one", "two"), own_words=own_words, required=required)
    for kind, own_words, required in product(FieldKind, (True, False), (True, False))
)


def threads() -> Iterator[Thread]:
    """Jobs in each state that has blocks of its own."""
    jobs = (None, *(Job("j1", status, LINK) for status in ("active", "completed", "failed", "archived")))
    progress = Progress(PLAN, "Writing", changes=CHANGES, partial_files=2)
    for job, problem, muted_by in product(jobs, (None, Problem.UNCERTAIN, Problem.OUT_OF_REACH), ("", "U0BEN")):
        state = thread_state(job=job, problem=problem, muted_by=muted_by, progress=progress)
        made = replace(a_thread(ts="1.1", card_ts="1.1"), state=state)
        yield made
        yield replace(made, pull_request=FollowedPullRequest(Found(PULL), read_at=1.0))


def cards() -> Iterator[Iterable[Block]]:
    forms: tuple[tuple[RichBlock, ...], ...] = ((), (RichBlock.PLAN,), (RichBlock.CARD,), tuple(RichBlock))
    for thread, without in product(threads(), forms):
        yield card(thread, CONTEXT, without=without).blocks


def notices() -> list[Iterable[Block]]:
    """Notices of each kind, with short and long texts."""
    made: list[Iterable[Block]] = []
    thread = next(thread for thread in threads() if thread.pull_request)

    @seed(1)
    @settings(max_examples=4, database=None, phases=[Phase.generate], deadline=None)
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        notice = Notice(1, "k", thread.id, data.draw(messages_of(kind, TEXTS)), 0.0)
        made.extend(message.blocks for message in messages(thread, notice, CONTEXT))

    for kind in KINDS:
        if kind not in {CardChanged, ReactionChanged}:
            draw()
    return made


def homes() -> Iterator[View]:
    jobs, projects = list(threads())[:8], ("guides", "api")
    held = [
        (Request("r1", "t1", kind, "k1", "U1", "Fix it", "", 0.0, state=RequestState.AWAITING_PERSON), jobs[0])
        for kind in RequestKind
    ]
    for preference in (Preference(), Preference("api", quiet=True)):
        whole = HomeContent("U1", 1, jobs, has_older=True, waiting=jobs, held=held, preference=preference)
        for content in (HomeContent("U1"), whole):
            yield home_view(content, {job.id: LINK for job in jobs}, CONTEXT, projects=projects)


def modals() -> Iterator[View]:
    drafted, projects = Drafted("Fix it", Preference("api", quiet=True)), ("guides", "api")
    for place in (ModalPlace(), ModalPlace("C1", "1.1", "1.2", "t1", ContextScope.THREAD, ("F1",), ("a.md",))):
        for each in (Drafted(), drafted):
            yield new_job_modal(place, each, projects)
            yield new_job_modal(place, each, projects, plan_first=True)
            yield follow_up_modal(place, each)
            shown = ShownContext(ContextText("said", ContextNotes(), ()), has_thread=True, unreadable=True)
            yield hand_over_modal(place, each, projects, shown)
        yield answer_modal(place, FIELDS)
    yield settings_modal(drafted.preference, projects)
    yield message_modal(escape("<!channel>"))


def typescript(messages: list[Any], homes: list[Any], modals: list[Any]) -> str:
    tasks = [task for message in messages for block in message for task in block.get("tasks", ())]
    rows = {
        "KnownBlock[][]": messages,
        "TaskCardBlock[]": tasks,
        "HomeView[]": homes,
        "ModalView[]": modals,
    }
    lines = ['import type { HomeView, KnownBlock, ModalView, TaskCardBlock } from "@slack/types";']
    lines += [f"export const made{n}: {kind} = {json.dumps(row)};" for n, (kind, row) in enumerate(rows.items())]
    return "\n".join(lines)


def compiled(folder: Path, source: str) -> str:
    """Returns what TypeScript finds wrong; empty if nothing."""
    types = installed_folder(TYPES) / "node_modules" / "@slack" / "types" / "dist" / "index.d.ts"
    (folder / "made.ts").write_text(source, encoding="utf-8")
    options = {
        "strict": True,
        "noEmit": True,
        "exactOptionalPropertyTypes": True,
        "module": "nodenext",
        "types": [],
        "paths": {"@slack/types": [str(types)]},
    }
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["made.ts"]}))
    tsc = program_folder(COMPILER) / "tsc"
    done = subprocess.run((tsc, "-p", folder), capture_output=True, text=True, timeout=300, check=False)
    return f"{done.stdout}{done.stderr}"


def test_everything_shown_has_slacks_own_types(tmp_path: Path) -> None:
    shown = [[*blocks] for blocks in (*cards(), *notices()) if blocks]
    views = list(homes()), list(modals())
    kinds = {
        block["type"] for blocks in (*shown, *(view["blocks"] for each in views for view in each)) for block in blocks
    }
    assert kinds >= {"plan", "card", "markdown", "actions", "section", "context", "input", "header"}
    try:
        assert compiled(tmp_path, typescript(shown, *views)) == ""
        wrong = [[{"type": "plan", "title": {"type": "plain_text", "text": "x"}, "tasks": []}]]
        assert "error TS" in compiled(tmp_path, typescript(wrong, [], [])), "the check checks something"
    except NotInstalled as error:
        pytest.skip(str(error))
