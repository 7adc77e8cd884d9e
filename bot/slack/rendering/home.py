"""App Home: a person's jobs, open questions and defaults, and for administrators Pagehand's health. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain

from bot.domain.people.home import HomeContent, PartHealth, can_be_retried, can_only_be_stopped_here
from bot.domain.people.members import Preference
from bot.domain.projects import name_among
from bot.domain.requests.held import question_about
from bot.domain.requests.request import Request, RequestKind
from bot.domain.threads.direct_messages import to_ask_about
from bot.domain.threads.thread import Thread
from bot.notices.said import NOTHING, Markup, joined
from bot.slack.rendering.blocks import Block, actions, button, context_block, plain_text, said_by, section
from bot.slack.rendering.cards import state_line
from bot.slack.rendering.message_context import MessageContext, SlackRenderer
from bot.slack.rendering.modals import View
from bot.slack.rendering.text import channel, escape, one_line, safe_url
from bot.slack.rendering.words import home as words

HOME_START, HOME_DEFAULTS = "home_start", "home_defaults"
HOME_EXAMPLE = "home_example"
"""An example of a task."""
HOME_RETRY = "home_retry"
"""The thread's id, as for the next."""
HOME_STOP = "home_stop"
HOME_NEWER, HOME_OLDER = "home_newer", "home_older"
"""The number of the page, from 0."""

_MAX_PROMPT, _MAX_STATE, _MAX_LINK = 150, 600, 300
_MOST_WAITING, _MOST_PARTS = 5, 40
_MINUTE = 60


def home_view(
    content: HomeContent, links: Mapping[str, str], message_context: MessageContext, *, projects: Sequence[str] = ()
) -> View:
    """Returns a person's Home. `links` are the URLs of threads in Slack, by our ids."""
    return {
        "type": "home",
        "blocks": [
            *_waiting(content, links, message_context),
            _header(words.YOUR_JOBS),
            *_jobs(content, links, message_context),
            *_pages(content),
            actions(button(words.START_JOB, HOME_START, "start") | {"style": "primary"}),
            _header(words.YOUR_DEFAULTS),
            section(_preference(content.preference, projects))
            | {"accessory": button(words.CHANGE, HOME_DEFAULTS, "change")},
            *([] if content.failing is None else _health(content.failing)),
            context_block([words.UPDATED(seconds=int(content.updated_at))]),
        ],
    }


def _waiting(content: HomeContent, links: Mapping[str, str], message_context: MessageContext) -> list[Block]:
    """Returns what this person has to do, which comes first, because those jobs wait for it."""
    asked = [
        [section(words.AGENT_ASKS(prompt=_prompt(thread)) + _link(links.get(thread.id), words.LINK_TO_ANSWER))]
        for thread in content.waiting
    ]
    firsts = to_ask_about([request for request, _ in content.held])
    asked += [_held(request, thread, links, message_context) for request, thread in content.held if request in firsts]
    if not asked:
        return []
    more = [section(words.MORE_WAITING)] if len(asked) > _MOST_WAITING else []
    return [_header(words.WAITING_FOR_YOU), *chain.from_iterable(asked[:_MOST_WAITING]), *more]


def _held(request: Request, thread: Thread, links: Mapping[str, str], message_context: MessageContext) -> list[Block]:
    """Returns the question about a request that waits for this person, with its buttons."""
    if request.kind is RequestKind.START and request.held_because is None:
        return [section(_which_project(thread))]
    said = question_about(request).tell(SlackRenderer(message_context), thread)
    told = f"• {said.words}{_link(links.get(thread.id), words.LINK_TO_THREAD)}"
    return [section(told), actions(*said_by(said.buttons))]


def _which_project(thread: Thread) -> Markup:
    if thread.channel_id.startswith("D"):
        return words.WHICH_PROJECT_DIRECTLY(prompt=_prompt(thread))
    return words.WHICH_PROJECT(prompt=_prompt(thread), channel=channel(thread.channel_id))


def _jobs(content: HomeContent, links: Mapping[str, str], message_context: MessageContext) -> list[Block]:
    if not content.jobs:
        return _example(message_context) if content.page == 0 else [section(words.NO_OLDER_JOBS)]
    return [_job(thread, links, message_context) for thread in content.jobs]


def _job(thread: Thread, links: Mapping[str, str], message_context: MessageContext) -> Block:
    told = words.JOB(prompt=_prompt(thread), state=_first_lines(state_line(thread.state, message_context)))
    pull_request = _link(thread.state.job.pr_link if thread.state.job else None, words.LINK_TO_PULL_REQUEST)
    block = section(f"{told}{pull_request}{_link(links.get(thread.id), words.LINK_TO_THREAD)}")
    if can_be_retried(thread):
        return block | {"accessory": button(words.RETRY, HOME_RETRY, thread.id)}
    if can_only_be_stopped_here(thread):
        return block | {"accessory": button(words.STOP, HOME_STOP, thread.id)}
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
    newer = [button(words.NEWER, HOME_NEWER, str(content.page - 1))] if content.page else []
    older = [button(words.OLDER, HOME_OLDER, str(content.page + 1))] if content.has_older else []
    return [actions(*newer, *older)] if newer or older else []


def _preference(preference: Preference, projects: Sequence[str]) -> Markup:
    told = words.NOT_MENTIONED if preference.quiet else words.MENTIONED
    if len(projects) <= 1:
        return told
    project = one_line(name_among(projects, preference.project), 200)
    return joined([words.DEFAULT_PROJECT(project=project) if project else words.NO_DEFAULT_PROJECT, told], "\n")


def _example(message_context: MessageContext) -> list[Block]:
    example = words.EXAMPLE(slash=message_context.slash, task=escape(words.EXAMPLE_TASK))
    told = joined([words.NO_JOBS, example, words.OTHER_WAYS(bot=message_context.bot)], "\n")
    return [section(told), actions(button(words.TRY_EXAMPLE, HOME_EXAMPLE, words.EXAMPLE_TASK))]


def _health(failing: Sequence[PartHealth]) -> list[Block]:
    lines = [_part(part) for part in failing[:_MOST_PARTS]] or [words.ALL_WELL]
    return [
        _header(words.HEALTH),
        *(section("\n".join(lines[start : start + 10])) for start in range(0, len(lines), 10)),
    ]


def _part(part: PartHealth) -> Markup:
    name, reason = words.PARTS.get(part.name) or one_line(part.name, 80), one_line(part.reason, 150)
    minutes = int(part.failing_seconds // _MINUTE)
    if minutes > 1:
        return words.FAILS_FOR_MINUTES(part=name, count=minutes, reason=reason)
    return words.FAILS_SINCE_JUST_NOW(part=name, reason=reason)


def _prompt(thread: Thread) -> Markup:
    return one_line(thread.prompt, _MAX_PROMPT) or words.PROMPT_MISSING


def _link(url: str | None, label: Markup) -> Markup:
    safe = escape(safe_url(url) or "")
    return Markup(f" {words.LINK(url=safe, label=label)}") if safe and len(safe) <= _MAX_LINK else NOTHING


def _header(text: str) -> Block:
    return {"type": "header", "text": plain_text(text)}
