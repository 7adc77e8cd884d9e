"""An agent's questions to people: forms of the Agent Client Protocol, and the replies that fill them in.

https://agentclientprotocol.com/protocol/elicitation, form mode only, with texts and choices. Pages to open,
other kinds of fields and requests for secrets are declined; patterns are ignored, since an agent could choose expensive
ones. Forms are asked one at a time, while the turn's time limit is paused.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from acp import schema

from bot.jobapi.models import FieldKind, Hide, QuestionField, QuestionOption
from bot.jobserver.editors.interface import EditProgress
from bot.jobserver.store.records import Question
from bot.jobserver.text import one_line

MOST_FIELDS, MOST_OPTIONS = 10, 100
_MOST_ASKED = 20
"""Forms of a turn."""
_LONGEST_NAME, _LONGEST_TITLE, _LONGEST_LABEL = 200, 300, 200
_LONGEST_MESSAGE = 3_000
_SECRET = re.compile(
    r"passw|passphrase|secret|credential|\btoken\b|_token\b|api[ _-]?key|private[ _-]?key|\bpin\b", re.IGNORECASE
)
_FREE_FORM_SUFFIXES = ("_custom", "_note")
"""Suffixes of the fields that accept a free-form answer instead of a choice, as Claude and Codex name them."""
_SEPARATORS = (re.compile(";"), re.compile(r"[,;\n]|\band\b"))
"""Separators between several choices; the first that fits is used, since some labels contain commas."""

Value = str | list[str]
Property = schema.ElicitationStringPropertySchema | schema.ElicitationMultiSelectPropertySchema


@dataclass(frozen=True)
class FormField:
    """A field of a form. `values`: the values of its options, by label. `free_form_field`: the name of the field for a
    free-form answer, or an empty string.
    """

    name: str
    shown: QuestionField
    values: Mapping[str, str]
    free_form_field: str = ""


@dataclass(frozen=True)
class Form:
    """An agent's form."""

    message: str
    fields: tuple[FormField, ...]

    def in_words(self) -> str:
        """Returns the question with its choices, in Markdown."""
        lines = [self.message]
        for field in self.fields:
            is_told = len(self.fields) == 1 and field.shown.options and "?" in self.message
            lines += [] if is_told or field.shown.title in self.message else [f"**{field.shown.title}**"]
            lines += [_listed(option) for option in field.shown.options]
        return "\n".join(lines)


def _listed(option: QuestionOption) -> str:
    return f"- {option.label}: {option.description}" if option.description else f"- {option.label}"


def read_form(request: schema.CreateFormSessionElicitationRequest) -> Form | None:
    """Returns the form; None if it must not be shown: it is too large, has other fields, or asks for a secret."""
    properties = request.requested_schema.properties or {}
    required = frozenset(request.requested_schema.required or ())
    if not properties or len(properties) > 2 * MOST_FIELDS or len(request.message) > _LONGEST_MESSAGE:
        return None
    fields = [
        _form_field(name, field, is_required=name in required)
        for name, field in properties.items()
        if isinstance(field, Property) and not _is_secret(name, field)
    ]
    known = [field for field in fields if field is not None]
    if len(known) < len(properties):
        return None
    form = Form(request.message.strip(), tuple(_with_free_form(known)))
    return form if form.message and len(form.fields) <= MOST_FIELDS else None


def _is_secret(name: str, field: Property) -> bool:
    match field.field_meta:
        case {"codex": {"isSecret": is_secret}} if is_secret:
            return True
    has_format = isinstance(field, schema.ElicitationStringPropertySchema) and field.format == "password"
    return has_format or any(_SECRET.search((text or "")[:1_000]) for text in (name, field.title, field.description))


def _form_field(name: str, field: Property, *, is_required: bool) -> FormField | None:
    options, is_multiple = list(_options(field)), isinstance(field, schema.ElicitationMultiSelectPropertySchema)
    if len(name) > _LONGEST_NAME or (is_multiple and not options):
        return None
    labels = [label for label, _, _ in options]
    if len(options) > MOST_OPTIONS or len(set(labels)) < len(labels) or any(len(x) > _LONGEST_LABEL for x in labels):
        return None
    shown = QuestionField(
        title=one_line(field.title or field.description or name)[:_LONGEST_TITLE],
        kind=FieldKind.CHOICES if is_multiple else FieldKind.CHOICE if options else FieldKind.TEXT,
        options=tuple(QuestionOption(label=label, description=words) for label, _, words in options),
        required=is_required,
    )
    return FormField(name, shown, {label: value for label, value, _ in options})


def _options(field: Property) -> Iterator[tuple[str, str, str | None]]:
    """Yields each option's label, value and description."""
    match field:
        case schema.ElicitationStringPropertySchema(one_of=titled) if titled:
            yield from map(_option, titled)
        case schema.ElicitationMultiSelectPropertySchema(items=schema.TitledMultiSelectItems(any_of=titled)):
            yield from map(_option, titled)
        case (
            schema.ElicitationStringPropertySchema(enum=plain)
            | schema.ElicitationMultiSelectPropertySchema(items=schema.StringMultiSelectItems(enum=plain))
        ):
            yield from ((one_line(value), value, None) for value in plain or ())


def _option(option: schema.EnumOption) -> tuple[str, str, str | None]:
    words = getattr(option, "description", None)
    return one_line(option.title), option.const, one_line(words)[:_LONGEST_TITLE] if isinstance(words, str) else None


def _with_free_form(fields: Sequence[FormField]) -> Iterator[FormField]:
    """Yields the fields, merging those for a free-form answer into the choice they belong to."""
    texts = {field.name for field in fields if field.shown.kind is FieldKind.TEXT and not field.shown.required}
    for field in fields:
        companion = next((name for name in _companions(field) if name in texts), "")
        if companion:
            yield replace(field, free_form_field=companion, shown=field.shown.model_copy(update={"own_words": True}))
        elif not (field.name in texts and any(field.name in _companions(each) for each in fields)):
            yield field


def _companions(field: FormField) -> list[str]:
    return [f"{field.name}{ending}" for ending in _FREE_FORM_SUFFIXES] if field.values else []


def form_content(form: Form, reply: str) -> dict[str, Value] | None:
    """Returns the form's content according to a reply; None if the reply does not answer the form."""
    if len(form.fields) == 1:
        return _answer(form.fields[0], reply.strip())
    content: dict[str, Value] = {}
    answers = dict(_labelled(form, reply))
    for field in form.fields:
        if (text := answers.get(field.name)) is None:
            if field.shown.required:
                return None
        elif (answer := _answer(field, text)) is None:
            return None
        else:
            content |= answer
    return content or _free_form(form, reply.strip())


def _labelled(form: Form, reply: str) -> Iterator[tuple[str, str]]:
    """Yields the names and answers of fields from lines such as `title: answer`."""
    names = {field.shown.title.rstrip(":"): field.name for field in form.fields}
    for line in reply.splitlines():
        for title, name in names.items():
            head, colon, rest = line[: len(title)], line[len(title) : len(title) + 1], line[len(title) + 1 :]
            if head.casefold() == title.casefold() and colon == ":" and rest.strip():
                yield name, rest.strip()


def _free_form(form: Form, reply: str) -> dict[str, Value] | None:
    field = next((field for field in form.fields if field.free_form_field), None)
    is_enough = not any(field.shown.required for field in form.fields)
    return {field.free_form_field: reply} if field and reply and is_enough else None


def _answer(field: FormField, text: str) -> dict[str, Value] | None:
    match field.shown.kind:
        case FieldKind.CHOICE:
            value = _chosen(field, text)
            return {field.name: value} if value is not None else _words(field, text)
        case FieldKind.CHOICES:
            return _several(field, text)
        case _:
            return {field.name: text} if text else None


def _chosen(field: FormField, text: str) -> str | None:
    """Returns the value of the option that a text names by label, value or number."""
    wanted = text.strip().casefold().rstrip(".")
    for number, (label, value) in enumerate(field.values.items(), 1):
        if wanted in {label.casefold().rstrip("."), value.casefold(), str(number)}:
            return value
    return None


def _several(field: FormField, text: str) -> dict[str, Value] | None:
    if (only := _chosen(field, text)) is not None:
        return {field.name: [only]}
    for separator in _SEPARATORS:
        parts = [part for part in separator.split(text) if part.strip()]
        chosen = [_chosen(field, part) for part in parts]
        if parts and None not in chosen:
            return {field.name: list(dict.fromkeys(value for value in chosen if value is not None))}
    return _words(field, text)


def _words(field: FormField, text: str) -> dict[str, Value] | None:
    return {field.free_form_field: text} if field.free_form_field and text else None


@contextmanager
def paused(time_limit: asyncio.Timeout) -> Iterator[None]:
    """Pauses a time limit during the block; blocks must not overlap. It may have ended, also meanwhile."""
    now = asyncio.get_running_loop().time
    left = (time_limit.when() or 0) - now()
    with suppress(RuntimeError):
        time_limit.reschedule(None)
    try:
        yield
    finally:
        with suppress(RuntimeError):
            time_limit.reschedule(now() + left)


class Questions:
    """The questions of a turn. `unanswered`: one that nobody answered in time; the job ends with it. `has_answer`: a
    person answered one.
    """

    def __init__(self, progress: EditProgress, redact: Hide, time_limit: asyncio.Timeout) -> None:
        self._progress = progress
        self._redact = redact
        self._time_limit = time_limit
        self._one_by_one = asyncio.Lock()
        self._open: asyncio.Future[str | None] | None = None
        self._asked = 0
        self._is_withdrawn = False
        self.unanswered: Question | None = None
        self.has_answer = False

    async def ask(self, request: schema.CreateFormSessionElicitationRequest) -> schema.CreateElicitationResponse:
        """Waits for a person's answer. Declines forms that must not be shown, and all forms after an unanswered one."""
        form = read_form(request)
        async with self._one_by_one:
            self._asked += 1
            if self._is_withdrawn:
                return schema.CancelElicitationResponse(action="cancel")
            if form is None or self.unanswered or self._asked > _MOST_ASKED:
                return schema.DeclineElicitationResponse(action="decline")
            with paused(self._time_limit):
                return await self._answered(form)

    async def withdraw(self) -> None:
        """Cancels open questions, so that the agent gets an answer before it is asked to stop."""
        self._is_withdrawn = True
        if self._open is not None:
            self._open.cancel()
            await asyncio.wait({self._open})

    async def _answered(self, form: Form) -> schema.CreateElicitationResponse:
        fields = tuple(field.shown.with_words(self._redact) for field in form.fields)
        question = Question(self._redact(form.in_words()), fields)
        asking = asyncio.ensure_future(
            self._progress.ask(question, lambda reply: form_content(form, reply) is not None)
        )
        self._open = asking
        try:
            reply = await asking
        except asyncio.CancelledError:
            if not self._is_withdrawn:
                raise
            return schema.CancelElicitationResponse(action="cancel")
        finally:
            asking.cancel()
            self._open = None
        content = form_content(form, reply) if reply is not None else None
        if content is None:
            self.unanswered = question
            return schema.DeclineElicitationResponse(action="decline")
        self.has_answer = True
        return schema.AcceptElicitationResponse(action="accept", content=content)
