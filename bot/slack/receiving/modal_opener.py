"""Opens modals: first empty, because a trigger is valid for only three seconds, then filled when the data is there.
Keeps what people type into them, so that nothing is lost when a modal is closed, and collects the context of a message
that is handed over: the message or its thread, with secrets masked.

Permissions are checked before a form is shown. All of this happens after the acknowledgement, which waits for neither
Slack nor the database.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.commands import NO_OPTIONS, Options
from bot.domain.context import ContextLimits, ContextText, characters_of, context_text
from bot.domain.jobs.job import QuestionField
from bot.domain.messages import ThreadMessage, people_in, with_known_names
from bot.domain.people import ChannelInfo, Preference
from bot.domain.permissions import Facts, PermissionRules, Refusal, Refused, may, refusal_anywhere
from bot.domain.projects import Projects
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.errors import ChatError, StoreError
from bot.notices.questions import RequestRefused
from bot.notices.said import Markup
from bot.ports.service import ServicePort
from bot.ports.slack import Conversations, DisplayNames, SlackReading
from bot.runtime.recent import RecentSet
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import in_thread_if_long
from bot.slack.message_parts.contents import thread_message
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import (
    CONTEXT_CHARACTERS,
    CONTEXT_WIDTH,
    COULD_NOT_FILL,
    COULD_NOT_OPEN,
    LOADING,
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
from bot.slack.rendering.text import width
from bot.slack.sending.views import ShownView, SlackViews

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HandOverContext:
    """Collects the context. `people` looks up the names of authors."""

    conversations: Conversations
    people: DisplayNames
    masker: SecretMasker

    async def of_message(self, place: ModalPlace, message: SlackMessage) -> ShownContext:
        """Returns the context that is shown first: the message from the shortcut's payload."""
        read = thread_message(message)
        messages: tuple[ThreadMessage, ...] = ()
        if read is not None:
            names = await self.people.names(people_in((read,))[:20])
            messages = (with_known_names(read, names),)
        thread = await self._thread(place) if place.thread_ts else ()
        has_thread = thread is not None and len(thread) > 1
        return await self._shown(messages, has_thread=has_thread, unreadable=thread is None)

    async def in_scope(self, place: ModalPlace) -> ShownContext | None:
        """Returns the context that the place's scope selects; None if it can no longer be read."""
        thread = await self._thread(place)
        if thread is None:
            return None
        whole = place.scope == ContextScope.THREAD
        messages = thread if whole else [message for message in thread if message.ts == place.message_ts]
        has_thread = whole or len(thread) > 1
        return await self._shown(messages, has_thread=has_thread, unreadable=False) if messages else None

    async def _thread(self, place: ModalPlace) -> Sequence[ThreadMessage] | None:
        """Returns the thread; None if Pagehand cannot read it, most often because it is not a member."""
        try:
            return await self.conversations.thread(place.channel_id, place.thread_ts or place.message_ts)
        except ChatError:
            return None

    async def _shown(self, messages: Sequence[ThreadMessage], *, has_thread: bool, unreadable: bool) -> ShownContext:
        context = await in_thread_if_long(characters_of(messages, (), ()), lambda: self._that_fits(messages))
        return ShownContext(context, has_thread=has_thread, unreadable=unreadable)

    def _that_fits(self, messages: Sequence[ThreadMessage]) -> ContextText:
        """Returns the context, cut further if its characters are wide."""
        mask = self.masker.mask_together
        context = context_text(messages, (), (), ContextLimits(characters=CONTEXT_CHARACTERS), mask=mask)
        if width(context.text) <= CONTEXT_WIDTH:
            return context
        return context_text(messages, (), (), ContextLimits(characters=CONTEXT_CHARACTERS // 2), mask=mask)


DraftKey = tuple[str, str]
"""The person and the place (ModalPlace.draft_key) that a draft belongs to."""


class DraftKeeper:
    """Saves the newest text of each draft in the background, one save at a time for each draft."""

    def __init__(self, service: ServicePort, recorder: RequestRecorder) -> None:
        self._service = service
        self._recorder = recorder
        self._unsaved: dict[DraftKey, str] = {}
        self._submitted = RecentSet(1_000)

    async def text(self, key: DraftKey) -> str:
        """Returns what was typed last, saved or not. Raises StoreError."""
        unsaved = self._unsaved.get(key)
        return await self._service.draft(*key) if unsaved is None else unsaved

    def keep(self, key: DraftKey, text: str, *, view_id: str) -> None:
        """Keeps a text, unless its view has been submitted meanwhile."""
        if view_id not in self._submitted:
            self._save(key, text)

    def forget(self, key: DraftKey, *, view_id: str) -> None:
        """Forgets a draft that was submitted."""
        self._submitted.add(view_id)
        self._save(key, "")

    def _save(self, key: DraftKey, text: str) -> None:
        is_being_saved = key in self._unsaved
        self._unsaved[key] = text
        if not is_being_saved:
            self._recorder.in_background(self._save_newest(key), name="keeping a draft")

    async def _save_newest(self, key: DraftKey) -> None:
        saved: str | None = None
        try:
            while (text := self._unsaved[key]) != saved:
                await self._service.save_draft(*key, text)
                saved = text
        except StoreError as error:
            logger.warning("a draft is not kept: %s", type(error).__name__)
        finally:
            del self._unsaved[key]


_ANYWHERE = ChannelInfo("", "", is_shared_outside=False, is_private=False, is_direct=True)
"""The placeholder for a channel that the form still has to ask for."""


@dataclass(frozen=True)
class Admission:
    """Checks permissions before a form is shown. `reading` looks up people, channels and groups."""

    rules: PermissionRules
    reading: SlackReading
    message_context: MessageContext

    async def refusal(self, person: Person, channel_id: str, wanted: RequestKind) -> Markup:
        """Returns why somebody may not, as text. Empty if they may, or if Slack cannot be asked: permissions are
        checked again when the request takes effect.
        """
        thread = Thread("", person.team_id, channel_id, person.id, "", "", 0.0)
        try:
            facts = await self._facts(person, thread)
        except ChatError:
            return Markup("")
        verdict = may(person, wanted, facts)
        return self._told(person, wanted, verdict.reason if isinstance(verdict, Refused) else None)

    def known_refusal(self, person: Person, wanted: RequestKind) -> Markup:
        """Returns why somebody may not, if that is known without asking Slack; otherwise an empty text."""
        member = self.reading.members.known_member(person.id)
        return self._told(person, wanted, refusal_anywhere(member, self.rules) if member else None)

    def _told(self, person: Person, wanted: RequestKind, refusal: Refusal | None) -> Markup:
        return RequestRefused(person.id, refusal, wanted).why(self.message_context) if refusal else Markup("")

    async def _facts(self, person: Person, thread: Thread) -> Facts:
        member, channel, in_groups = await asyncio.gather(
            self.reading.members.member(person.id), self._channel(thread.channel_id), self._in_groups(person)
        )
        return Facts(self.rules, thread, member, channel, in_groups, WayIn.MODAL)

    async def _channel(self, channel_id: str) -> ChannelInfo:
        return await self.reading.channels.channel(channel_id) if channel_id else _ANYWHERE

    async def _in_groups(self, person: Person) -> bool:
        groups = self.rules.groups
        return bool(groups) and person.id in await self.reading.groups.members_of(groups)


@dataclass(frozen=True)
class ModalEdges:
    """What modals need from Slack. `masker` masks secrets in contexts."""

    views: SlackViews
    conversations: Conversations
    people: DisplayNames
    projects: Projects = field(default_factory=lambda: Projects(()))
    masker: SecretMasker = field(default_factory=SecretMasker)
    admission: Admission | None = None


Fill = Callable[[], Awaitable[View]]


class ModalOpener:
    """One for an app. Each method returns at once. `drafts` hold the text that modals start with."""

    def __init__(self, service: ServicePort, recorder: RequestRecorder, edges: ModalEdges) -> None:
        self._service = service
        self._recorder = recorder
        self._edges = edges
        self.drafts = DraftKeeper(service, recorder)
        self._context = HandOverContext(edges.conversations, edges.people, edges.masker)
        self.masker = edges.masker

    def known_refusal(self, person: Person, wanted: RequestKind) -> Markup:
        """See Admission."""
        return self._edges.admission.known_refusal(person, wanted) if self._edges.admission else Markup("")

    def new_job(
        self, trigger_id: str, person: Person, place: ModalPlace, said: Options = NO_OPTIONS, *, prompt: str = ""
    ) -> None:
        """Opens the modal for a job. Options in the command take precedence over the person's preferences, and a draft
        over `prompt`.
        """

        async def view() -> View:
            drafted = await self._drafted(person, place)
            preferred = drafted.preference
            preference = Preference(said.project or preferred.project, said.quiet or preferred.quiet)
            asked, first = Drafted(drafted.prompt or prompt, preference), self.plans_first(place, preference.project)
            return new_job_modal(place, asked, self._edges.projects.names, plan_first=first)

        place = replace(place, mode=said.agent.mode or "", model=said.agent.model, effort=said.agent.effort)
        self._open(trigger_id, person, place, view, RequestKind.START)

    def plans_first(self, place: ModalPlace, project: str) -> bool | None:
        """See Projects."""
        return self._edges.projects.plans_first(place.channel_id, project)

    async def _handing_over(self, person: Person, place: ModalPlace, context: ShownContext) -> View:
        drafted = await self._drafted(person, place)
        first = self.plans_first(place, drafted.preference.project)
        return hand_over_modal(place, drafted, self._edges.projects.names, context, plan_first=first)

    def follow_up(self, trigger_id: str, person: Person, place: ModalPlace) -> None:
        """Opens the modal for a follow-up to a job."""

        async def view() -> View:
            return follow_up_modal(place, await self._drafted(person, place))

        self._open(trigger_id, person, place, view, RequestKind.FOLLOW_UP)

    def answer(self, trigger_id: str, person: Person, place: ModalPlace, fields: Sequence[QuestionField]) -> None:
        """Opens the modal for answers to an agent's question."""

        async def view() -> View:
            return answer_modal(place, fields)

        self._open(trigger_id, person, place, view, RequestKind.FOLLOW_UP)

    def settings(self, trigger_id: str, person: Person) -> None:
        """Opens the modal for a person's preferences."""

        async def view() -> View:
            return settings_modal(await self._service.preference(person.id), self._edges.projects.names)

        self._open(trigger_id, person, ModalPlace(), view)

    def hand_over(
        self, trigger_id: str, person: Person, place: ModalPlace, message: SlackMessage | None = None
    ) -> None:
        """Opens the modal that hands over a message, or, without one, a forwarded message that its author was asked
        about.
        """

        async def view() -> View:
            context = await (self._context.of_message(place, message) if message else self._context.in_scope(place))
            if context is None:
                return message_modal(COULD_NOT_FILL)
            return await self._handing_over(person, place, context)

        self._open(trigger_id, person, place, view, RequestKind.START)

    def change_scope(self, shown: ShownView, person: Person, place: ModalPlace) -> None:
        """Shows the context that the place's scope selects. The modal stays as it is if the context cannot be read, or
        if a later choice was faster.
        """

        async def work() -> None:
            context = await self._context.in_scope(place)
            if context is not None:
                await self._update(shown, await self._handing_over(person, place, context))

        self._recorder.in_background(self._guarded(work), name="showing another context")

    def _open(
        self, trigger_id: str, person: Person, place: ModalPlace, fill: Fill, wanted: RequestKind | None = None
    ) -> None:
        """Opens a modal, and then fills it with a form or, if the person may not ask for what is `wanted`, says why."""

        async def work() -> None:
            try:
                shown = await self._edges.views.open(trigger_id, message_modal(LOADING))
            except ChatError as error:
                logger.warning("a modal could not be opened: %s", error)
                if place.channel_id:
                    self._recorder.tell_in_background(person, place.channel_id, COULD_NOT_OPEN)
                return
            await self._update(shown, await self._filled(person, place, fill, wanted))

        self._recorder.in_background(self._guarded(work), name="opening a modal")

    async def _filled(self, person: Person, place: ModalPlace, fill: Fill, wanted: RequestKind | None) -> View:
        """Only the error's type is logged, since its text may quote what people wrote."""
        try:
            if wanted is not None and self._edges.admission is not None:
                refusal = await self._edges.admission.refusal(person, place.channel_id, wanted)
                if refusal:
                    return message_modal(refusal)
            return await fill()
        except Exception as error:  # noqa: BLE001 - whatever it was, the person is told
            logger.warning("a modal could not be filled: %s", type(error).__name__)
            return message_modal(COULD_NOT_FILL)

    async def _update(self, shown: ShownView, view: View) -> None:
        try:
            await self._edges.views.update(shown, view)
        except ChatError as error:
            logger.info("a modal is left as it is: %s", error)  # usually because it was closed

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - nobody waits for it, and its words are not for the log
            logger.error("a modal could not be shown: %s", type(error).__name__)  # noqa: TRY400 - as above

    async def _drafted(self, person: Person, place: ModalPlace) -> Drafted:
        """Returns what was typed before. If the database is unavailable, the form starts empty."""
        try:
            text = await self.drafts.text((person.id, place.draft_key))
            return Drafted(text, await self._service.preference(person.id))
        except StoreError as error:
            logger.warning("a modal is opened without its draft: %s", type(error).__name__)
            return Drafted("", Preference())
