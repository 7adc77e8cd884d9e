"""The fuzz targets. A target's function gets bytes and raises if they were read wrongly; each has a few seeds."""

import json
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from markdown_it import MarkdownIt

from bot.domain.commands import Aside, FollowUp, NoWords, OnlyEmoji, Start, UnclearWord, Word, parse_reply, parse_slash
from bot.domain.messages import unescape, with_names
from bot.errors import JobApiUnreadable
from bot.jobapi.models import MAX_ID, Job
from bot.jobapi.wire import error_message_in, parse_job
from bot.jobserver.documents import decoded, title_of
from bot.jobserver.editors.builtin import replaced
from bot.jobserver.editors.builtin_prompts import AddPage, FixTypos, Replace, Undo, parse
from bot.runtime.text import printable_line
from bot.slack.rendering.agent_markdown import defused
from bot.slack.rendering.text import escape, safe_url

Reader = Callable[[bytes], None]

_MENTION = re.compile(r"<[!@#][A-Za-z^]|@(here|channel|everyone)\b", re.IGNORECASE)
_NOT_SHOWN = set(map(chr, range(9))) | {"\x0b", "\x0c", "\x1b", "\x7f"}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass") if b"\xed" not in data else data.decode("utf-8", "replace")


def slack_text(data: bytes) -> None:
    with suppress(UnicodeDecodeError):
        text = _text(data)
        words = unescape(text)
        assert words == words.strip()
        assert not _NOT_SHOWN & set(words)
        asked = parse_slash(text)
        assert (
            not isinstance(asked, Start)
            or words.endswith(with_names(asked.prompt, {}))
            or words[:-1].endswith(with_names(asked.prompt, {}))
        )
        said = parse_reply(text, bot_user_id="U0BOT")
        assert isinstance(said, Aside | OnlyEmoji | NoWords | Word | UnclearWord | FollowUp)
        assert unescape(escape(words)) == words, "our remarks about a text are not part of it"


def addresses(data: bytes) -> None:
    url = safe_url(data.decode("utf-8", "replace"))
    assert url is None or not set(url) & set(' <>|"\n')


def agent_markdown(data: bytes) -> None:
    shown = defused(data.decode("utf-8", "replace"))
    for token in (child for block in MarkdownIt().parse(shown) for child in block.children or ()):
        address = str(token.attrs.get("href", ""))
        assert not address or address.startswith("mailto:") or safe_url(address) == address, (shown, address)
    assert not _MENTION.search(shown)


def job_answer(data: bytes) -> None:
    with suppress(JobApiUnreadable):
        job = parse_job(data)
        assert isinstance(job, Job)
        assert 0 < len(job.id) <= MAX_ID
        assert job.status
        assert all(text is None or text.isprintable() for text in vars(job).values())


def job_error(data: bytes) -> None:
    words = printable_line(error_message_in(data), 500)
    assert len(words) <= 500
    assert words.isprintable()


def editor_prompt(data: bytes) -> None:
    with suppress(UnicodeDecodeError):
        assert isinstance(parse(_text(data)), AddPage | FixTypos | Replace | Undo | None)


def documentation_page(data: bytes) -> None:
    text = decoded(data) or ""
    assert title_of(text) != ""
    changed, count = replaced(text, {"a": "b"})
    assert len(changed) == len(text)
    assert sum(one != other for one, other in zip(text, changed, strict=True)) == count.total()


def workspace_http() -> Reader:
    from fuzz.http_targets import workspace_handlers  # noqa: PLC0415 - the other targets start at once without servers

    return workspace_handlers()


def job_server_http() -> Reader:
    from fuzz.http_targets import job_server_handlers  # noqa: PLC0415 - the same

    return job_server_handlers(Path(tempfile.mkdtemp(prefix="pagehand-fuzz-")))


def _json(*values: object) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


BODY = {"channel": "CHANNEL", "user": "PERSON", "as": "PERSON", "text": "x", "ts": "MESSAGE", "timestamp": "MESSAGE"}
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "*x* <@PERSON>"}}, {"type": "actions", "elements": []}]
CALLS = [
    [b"channel=CHANNEL&text=x&ts=MESSAGE&timestamp=MESSAGE&name=eyes&user=PERSON&limit=2"],
    _json({**BODY, "blocks": BLOCKS, "thread_ts": "MESSAGE", "metadata": {"event_type": "x", "event_payload": {}}}),
    [b'--x\r\nContent-Disposition: form-data; name="channel"\r\n\r\nCHANNEL\r\n--x--\r\n'],
]
"""By encoding: a form, JSON, multipart."""
JOB = {"id": "j1", "status": "active", "source": {"repository": "a/b", "ref": "main"}, "model": "m", "prLink": None}
PROMPTS = [{"prompt": "Do it"}, {"prompt": ""}, {"prompt": "x", "files": [{"id": "0" * 64, "name": "a/../b.png"}]}]
TARGETS: dict[str, tuple[Callable[[], Reader], list[bytes]]] = {
    "slack_text": (
        lambda: slack_text,
        [b"<@U0BOT> a &lt;b&gt; <https://x.example|y> <!date^1^{date}|z>", b"// <!subteam^S1|@w> <#C1|d>", b"help"],
    ),
    "addresses": (lambda: addresses, [b"https://example.org/a?b#c", b"http://[::1]:80/", b"HTTPS://x@y/"]),
    "agent_markdown": (
        lambda: agent_markdown,
        [b"[a](https://b.example 'c') ![d][e]\n\n[e]: <https://f.example>\n", b"> - <https://g.example> `h`\n```\n"],
    ),
    "job_answer": (
        lambda: job_answer,
        [*_json(JOB, {**JOB, "prLink": "https://x.example", "id": 7}), b"<html>", b"\xef\xbb\xbf{}"],
    ),
    "job_error": (lambda: job_error, _json({"error": "no"}, {"detail": [{"msg": "x"}]}, ["a", {"message": "b"}])),
    "documentation_page": (
        lambda: documentation_page,
        [
            b"---\ntitle: x\n---\n# A {#b}\n\n[a](b.md) `c` <d e={f}>g</d> **h**\n\n```\ni\n```\n",
            b"> - a | b\n\r\n$$\n<!-- [x]: y -->",
        ],
    ),
    "editor_prompt": (
        lambda: editor_prompt,
        [
            b'Replace "a" with "b" in all the docs, please',
            b'Also add a page called FAQ with the text: "x"',
            b"check and fix the spelling mistakes everywhere. Undo that",
        ],
    ),
    "workspace_http": (
        workspace_http,
        [bytes([number]) + body for number in range(100) for body in CALLS[number % 3]],
    ),
    "job_server_http": (
        job_server_http,
        [bytes([number]) + body for number in range(11) for body in _json(*PROMPTS)],
    ),
}
