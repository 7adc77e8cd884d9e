"""What goes along with a request: the thread that it was written in, what was forwarded, and files."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.domain.notices.posts import ContextCut
from bot.domain.requests import Attachments, Request, RequestContext, UploadedFile
from bot.domain.secret_masking import SecretKind, mask_secrets
from bot.domain.slack_files import ForwardedMessage, QuotedFile, SlackFile, quoted
from bot.domain.thread_context import LIMITS, ContextNotes, ContextText, context_text
from bot.domain.thread_messages import ThreadMessage, people_in
from bot.ports import JobApi, People
from bot.scheduler.preparing.slack_reading import if_taken, if_told
from bot.slack_ports import SlackReading

MAX_QUOTED_BYTES = 64 * 1024
"""Of one file whose text goes along."""
MAX_SENT_BYTES = 10 * 1024 * 1024
"""Of one file that goes to the job API itself."""


@dataclass(frozen=True)
class ThreadPart:
    """Which messages of a Slack thread go along: those after one `ts` and before another, each empty for no bound."""

    thread_ts: str
    after_ts: str = ""
    before_ts: str = ""


@dataclass(frozen=True)
class Gathered:
    """What goes along with a request, and what of it does not."""

    context: RequestContext | None = None
    notes: ContextNotes = field(default_factory=ContextNotes)
    masked: tuple[SecretKind, ...] = ()

    def told_to(self, person_id: str) -> ContextCut | None:
        """What its person is told of what does not go along; None where that is nothing."""
        if not (self.notes or self.masked):
            return None
        left_out = self.notes.messages_left_out or self.notes.words_left_out
        kinds = tuple(kind.value for kind in self.masked)
        return ContextCut(person_id, self.notes.link_only, self.notes.cut_files, left_out, kinds)


class _Masking:
    """Masks secrets, and remembers which kinds there were."""

    def __init__(self) -> None:
        self.kinds: dict[SecretKind, None] = {}

    def text(self, text: str) -> str:
        masked = mask_secrets(text)
        self.kinds |= dict.fromkeys(masked.kinds)
        return masked.text

    def message(self, message: ThreadMessage) -> ThreadMessage:
        previews = tuple(replace(each, text=self.text(each.text)) for each in message.previews)
        forwarded = tuple(map(self.forwarded, message.forwarded))
        return replace(message, text=self.text(message.text), forwarded=forwarded, previews=previews)

    def forwarded(self, share: ForwardedMessage) -> ForwardedMessage:
        return replace(share, text=self.text(share.text))

    def file(self, quote: QuotedFile) -> QuotedFile:
        return quote if quote.text is None else replace(quote, text=self.text(quote.text))


class ContextGatherer:
    """Gathers what goes along with requests. Each call raises NotToBeHadNow."""

    def __init__(self, reading: SlackReading, job_api: JobApi, people: People | None) -> None:
        self._reading = reading
        self._job_api = job_api
        self._people = people

    async def gather(self, request: Request, channel_id: str, project: str, part: ThreadPart | None) -> Gathered:
        """Reads what goes along with a request for a project; `part` of the thread unless its person chose that."""
        given, masking = given_text(request.context), _Masking()
        messages: Sequence[ThreadMessage] = ()
        if part is not None and not given:
            messages = await self._messages(channel_id, part)
        files, uploaded = await self._files(request.attachments, project)
        made = context_text(
            list(map(masking.message, messages)),
            list(map(masking.file, files)),
            list(map(masking.forwarded, request.attachments.forwarded)),
            names=await self._names(request.attachments.forwarded),
        )
        return _gathered(given, made, uploaded, tuple(masking.kinds))

    async def _messages(self, channel_id: str, part: ThreadPart) -> Sequence[ThreadMessage]:
        bounds = {"after_ts": part.after_ts, "before_ts": part.before_ts}
        asked = self._reading.conversations.thread(channel_id, part.thread_ts, **bounds, limit=LIMITS.messages + 1)
        return await if_told(asked) or ()

    async def _names(self, forwarded: Sequence[ForwardedMessage]) -> dict[str, str]:
        ids = people_in((), forwarded)
        return dict(await self._people.names(ids)) if ids and self._people is not None else {}

    async def _files(self, attachments: Attachments, project: str) -> tuple[list[QuotedFile], tuple[UploadedFile, ...]]:
        files, uploaded = [], []
        for file in attachments.files:
            quote = await self._quoted(file)
            if quote.text is None and (sent := await self._sent(file, project)) is not None:
                quote = replace(quote, sent_along=True)
                uploaded.append(sent)
            files.append(quote)
        return files, tuple(uploaded)

    async def _quoted(self, file: SlackFile) -> QuotedFile:
        """The file with its text, where it is text and can be read."""
        if not (file.id and file.may_be_text):
            return QuotedFile(file)
        content = await if_told(self._reading.files.read(file, max_bytes=MAX_QUOTED_BYTES))
        return QuotedFile(file) if content is None else quoted(file, content)

    async def _sent(self, file: SlackFile, project: str) -> UploadedFile | None:
        """The file as the job API has it, where that takes files and it can be read as a whole."""
        if not file.id or file.size > MAX_SENT_BYTES or not self._job_api.takes_files(project):
            return None
        content = await if_told(self._reading.files.read(file, max_bytes=MAX_SENT_BYTES))
        if content is None or not content.complete or not content.data:
            return None
        name, mimetype = file.name or "file", content.mimetype or file.mimetype or "application/octet-stream"
        return await if_taken(self._job_api.upload(project, content.data, name=name, mimetype=mimetype))


def given_text(context: RequestContext | None) -> str:
    """What the person of a request chose to go along, before anything was gathered."""
    if context is None:
        return ""
    return context.text if context.given is None else context.given


def _gathered(
    given: str, made: ContextText, uploaded: tuple[UploadedFile, ...], masked: tuple[SecretKind, ...]
) -> Gathered:
    text = "\n\n".join(filter(None, (given, made.text)))
    return Gathered(RequestContext(text, uploaded, given), made.notes, masked)
