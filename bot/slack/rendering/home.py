"""App Home: a person's jobs, what waits for them, their defaults, and for administrators Pagehand's health. Pure."""

from collections.abc import Mapping, Sequence

from bot.domain.home import HomeContent, PartHealth, can_be_retried
from bot.domain.preferences import Preference
from bot.domain.projects import name_among
from bot.domain.threads import Thread
from bot.slack.rendering.blocks import Block, actions, button, context_block, plain_text, section
from bot.slack.rendering.cards import state_line
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import View
from bot.slack.rendering.text import escape, one_line, safe_url

HOME_START, HOME_DEFAULTS = "home_start", "home_defaults"
HOME_RETRY = "home_retry"
"""The thread's id."""
HOME_NEWER, HOME_OLDER = "home_newer", "home_older"
"""The number of the page, from 0."""

_MAX_PROMPT, _MAX_STATE, _MAX_LINK = 150, 600, 300
_MOST_WAITING, _MOST_PARTS = 5, 40
_MINUTE = 60


def home_view(
    content: HomeContent, links: Mapping[str, str], message_context: MessageContext, *, projects: Sequence[str] = ()
) -> View:
    """Somebody's Home. `links` are the addresses of threads in Slack, by our ids of them."""
    return {
        "type": "home",
        "blocks": [
            *_waiting(content, links),
            _header("Your jobs"),
            *_jobs(content, links, message_context),
            *_pages(content),
            actions(button("Start a job", HOME_START, "start") | {"style": "primary"}),
            _header("Your defaults"),
            section(_preference(content.preference, projects))
            | {"accessory": button("Change", HOME_DEFAULTS, "change")},
            *_health(content.health),
            context_block([f"Updated <!date^{int(content.updated_at)}^{{date_short_pretty}} {{time}}|a moment ago>"]),
        ],
    }


def _waiting(content: HomeContent, links: Mapping[str, str]) -> list[Block]:
    """What this person has to do stands first: nothing goes on before that."""
    lines = [
        f"• {_prompt(thread)}: the agent asks something{_link(links.get(thread.id), 'answer it')}"
        for thread in content.waiting
    ]
    lines += [
        f"• {_prompt(thread)}: which project is it for? You were asked {_where(thread.channel_id)}"
        for thread in content.undecided
    ]
    if not lines:
        return []
    more = ["• …"] if len(lines) > _MOST_WAITING else []
    return [_header("Waiting for you"), section("\n".join([*lines[:_MOST_WAITING], *more]))]


def _jobs(content: HomeContent, links: Mapping[str, str], message_context: MessageContext) -> list[Block]:
    if not content.jobs:
        return [section(_example(message_context) if content.page == 0 else "There are no older jobs.")]
    return [_job(thread, links, message_context) for thread in content.jobs]


def _job(thread: Thread, links: Mapping[str, str], message_context: MessageContext) -> Block:
    state = _first_lines(state_line(thread.state, message_context))
    pull_request = _link(thread.state.job.pr_link if thread.state.job else None, "pull request")
    block = section(f"*{_prompt(thread)}*\n{state}{pull_request}{_link(links.get(thread.id), 'thread')}")
    return block | {"accessory": button("Retry", HOME_RETRY, thread.id)} if can_be_retried(thread) else block


def _first_lines(state: str) -> str:
    """Where the job stands and why, without the steps that its card lists; cut between lines."""
    kept = ""
    for line in state.split("\n"):
        if line.startswith(":") or len(kept) + len(line) > _MAX_STATE:
            break
        kept += f"\n{line}" if kept else line
    return kept


def _pages(content: HomeContent) -> list[Block]:
    newer = [button("Newer", HOME_NEWER, str(content.page - 1))] if content.page else []
    older = [button("Older", HOME_OLDER, str(content.page + 1))] if content.has_older else []
    return [actions(*newer, *older)] if newer or older else []


def _preference(preference: Preference, projects: Sequence[str]) -> str:
    told = "nobody is mentioned when a job ends" if preference.quiet else "you are mentioned when a job ends"
    if len(projects) <= 1:
        return f"How you are told: {told}."
    project = one_line(name_among(projects, preference.project), 200) or "by the channel and the words"
    return f"Project: {project}\nHow you are told: {told}."


def _example(message_context: MessageContext) -> str:
    return (
        "You have not handed over a job yet. Try one, here or in any channel:\n"
        f"> {message_context.slash} Explain in the quick start how to change the port\n"
        f"You can also mention {message_context.bot} where the question came up, or choose *Hand to Pagehand* in the "
        "menu of a message. The agent works in the background, its pull request comes into the thread, and replies "
        "there steer it."
    )


def _health(parts: Sequence[PartHealth]) -> list[Block]:
    if not parts:
        return []
    lines = [_part(part) for part in sorted(parts[:_MOST_PARTS], key=lambda part: part.failing_seconds == 0)]
    return [
        _header("How Pagehand is"),
        *(section("\n".join(lines[start : start + 10])) for start in range(0, len(lines), 10)),
    ]


def _part(part: PartHealth) -> str:
    name = one_line(part.name, 80)
    if not part.failing_seconds:
        return f":white_check_mark: {name}"
    minutes = int(part.failing_seconds // _MINUTE)
    since = f"for {minutes} minutes" if minutes > 1 else "since a moment ago"
    return f":warning: {name} gets nowhere {since}: {one_line(part.reason, 150)}"


def _where(channel_id: str) -> str:
    return "in your direct messages" if channel_id.startswith("D") else f"in <#{one_line(channel_id, 50)}>"


def _prompt(thread: Thread) -> str:
    return one_line(thread.prompt, _MAX_PROMPT) or "a job"


def _link(url: str | None, label: str) -> str:
    safe = escape(safe_url(url) or "")
    return f" · <{safe}|{label}>" if safe and len(safe) <= _MAX_LINK else ""


def _header(text: str) -> Block:
    return {"type": "header", "text": plain_text(text)}
