"""App Home: a person's jobs, open questions and defaults. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain

from bot.domain.people import HomeContent, Preference
from bot.domain.projects import name_among
from bot.domain.requests.held import question_about, to_ask_about
from bot.domain.requests.request import Request, RequestKind
from bot.domain.threads.thread import (
    Thread,
    can_be_retried,
    can_only_be_stopped_here,
    shown_state,
    waits_for_person,
    waits_for_start,
)
from bot.notices.said import EXAMPLE, Markup, joined
from bot.slack.rendering.blocks import Block, actions, button, context_block, plain_text, said_by, section
from bot.slack.rendering.cards import state_line
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import View
from bot.slack.rendering.text import channel, escape, one_line, safe_url

HOME_START, HOME_DEFAULTS = "home_start", "home_defaults"
HOME_EXAMPLE = "home_example"
"""An example of a task."""
HOME_RETRY = "home_retry"
"""The thread's id, as for the next."""
HOME_STOP = "home_stop"
HOME_NEWER, HOME_OLDER = "home_newer", "home_older"
"""The number of the page, from 0."""

_MAX_PROMPT, _MAX_STATE, _MAX_LINK = 150, 600, 300
_MOST_WAITING = 5
_NO_JOBS = (
    "You haven't asked for a job yet. Try one, here or in any channel:",
    f"> {{slash}} {EXAMPLE}",
    (
        "You can also mention {bot} where the question came up, or choose *Hand to Pagehand* in a message's menu. The "
        "pull request comes into the thread, and replies there steer the agent."
    ),
)


def home_view(
    content: HomeContent, links: Mapping[str, str], show: MessageContext, *, projects: Sequence[str] = ()
) -> View:
    """Returns a person's Home. `links` are the URLs of threads in Slack, by our ids."""
    return {
        "type": "home",
        "blocks": [
            *_waiting(content, links, show),
            _header("Your jobs"),
            *_jobs(content, links, show),
            *_pages(content),
            actions(button("Start a job", HOME_START, "start") | {"style": "primary"}),
            _header("Your defaults"),
            section(_preference(content.preference, projects, show))
            | {"accessory": button("Change", HOME_DEFAULTS, "change")},
            context_block([f"Updated <!date^{int(content.updated_at)}^{{date_short_pretty}} {{time}}|a moment ago>"]),
        ],
    }


def _waiting(content: HomeContent, links: Mapping[str, str], show: MessageContext) -> list[Block]:
    """Returns what this person has to do, which comes first, because those jobs wait for it."""
    asked = []
    for thread in content.waiting:
        told, label = "• {prompt}: the agent has a question", "answer it"
        if waits_for_start(thread.state) and not waits_for_person(thread):
            told, label = "• {prompt}: a plan waits for *Start*", "see the plan"
        asked.append([section(show(told, prompt=_prompt(thread)) + _link(links.get(thread.id), label))])
    firsts = to_ask_about([request for request, _ in content.held])
    asked += [_held(request, thread, links, show) for request, thread in content.held if request in firsts]
    if not asked:
        return []
    more = [section("• …")] if len(asked) > _MOST_WAITING else []
    return [_header("Waiting for you"), *chain.from_iterable(asked[:_MOST_WAITING]), *more]


def _held(request: Request, thread: Thread, links: Mapping[str, str], show: MessageContext) -> list[Block]:
    """Returns the question about a request that waits for this person, with its buttons."""
    if request.kind is RequestKind.START and request.held_because is None:
        return [section(_which_project(thread, show))]
    said = question_about(request).tell(show, thread)
    told = f"• {said.words}{_link(links.get(thread.id), 'thread')}"
    return [section(told), actions(*said_by(said.buttons)) | {"block_id": f"request/{request.id}"}]


def _which_project(thread: Thread, show: MessageContext) -> Markup:
    is_direct = thread.channel_id.startswith("D")
    where = Markup("our direct messages") if is_direct else channel(thread.channel_id)
    return show("• {prompt}: which project is it for? I asked you in {where}", prompt=_prompt(thread), where=where)


def _jobs(content: HomeContent, links: Mapping[str, str], show: MessageContext) -> list[Block]:
    if not content.jobs:
        if content.page:
            return [section("There are no older jobs.")]
        example = button("Try this example", HOME_EXAMPLE, "example")
        return [section(joined(map(show, _NO_JOBS), "\n")), actions(example)]
    return [_job(thread, links, show) for thread in content.jobs]


def _job(thread: Thread, links: Mapping[str, str], show: MessageContext) -> Block:
    told = show(
        "*{prompt}*\n{state}", prompt=_prompt(thread), state=_first_lines(state_line(shown_state(thread), show))
    )
    pull_request = _link(thread.state.job.pr_link if thread.state.job else None, "pull request")
    block = section(f"{told}{pull_request}{_link(links.get(thread.id), 'thread')}") | {"block_id": f"job/{thread.id}"}
    if can_be_retried(thread):
        return block | {"accessory": button("Retry", HOME_RETRY, thread.id)}
    if can_only_be_stopped_here(thread):
        return block | {"accessory": button("Stop", HOME_STOP, thread.id)}
    return block


def _first_lines(state: str) -> Markup:
    """Returns the job's state and reason, without the steps that its card lists; cut between lines."""
    kept = ""
    for line in state.split("\n"):
        if line.startswith(":") or len(kept) + len(line) > _MAX_STATE:
            break
        kept += f"\n{line}" if kept else line
    return Markup(kept)


def _pages(content: HomeContent) -> list[Block]:
    newer = [button("Newer", HOME_NEWER, str(content.page - 1))] if content.page else []
    older = [button("Older", HOME_OLDER, str(content.page + 1))] if content.has_older else []
    return [actions(*newer, *older)] if newer or older else []


def _preference(preference: Preference, projects: Sequence[str], show: MessageContext) -> Markup:
    told = show(
        "When a job ends: {who}", who=Markup("nobody is mentioned" if preference.quiet else "you are mentioned")
    )
    if len(projects) <= 1:
        return told
    project = one_line(name_among(projects, preference.project), 200)
    chosen = project or Markup("chosen by the channel or by words in the request")
    return show("Project: {project}\n{told}", project=chosen, told=told)


def _prompt(thread: Thread) -> Markup:
    return one_line(thread.prompt, _MAX_PROMPT) or Markup("a job")


def _link(url: str | None, label: str) -> str:
    safe = escape(safe_url(url) or "")
    return f" · <{safe}|{label}>" if safe and len(safe) <= _MAX_LINK else ""


def _header(text: str) -> Block:
    return {"type": "header", "text": plain_text(text)}
