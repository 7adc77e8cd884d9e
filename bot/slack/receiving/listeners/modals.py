"""The modals: what was typed is kept, what is submitted is recorded, what cannot be is said at its field."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands.options import Options
from bot.domain.context.slack_files import SlackFile
from bot.domain.people.members import Preference
from bot.domain.requests.new_jobs import NewJob, Written
from bot.domain.requests.request import Attachments, Person, RequestContext, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.ports.service import ServicePort
from bot.runtime.json_fields import first_item_at, text_at
from bot.runtime.text import displayable
from bot.slack.receiving.modals.draft_keeper import DraftKey
from bot.slack.receiving.modals.opener import ModalOpener
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.fields import workspace_id
from bot.slack.receiving.payloads.views import (
    answers_in,
    channel_in,
    choice_in,
    place_of,
    shown_view,
    text_in,
    texts_in,
    view_id,
)
from bot.slack.receiving.request_recorder import RecordingOutcome, RequestRecorder
from bot.slack.rendering import blocks
from bot.slack.rendering.modal_inputs import MAX_PROMPT, EndNotification, Input, decoded_fields
from bot.slack.rendering.modals import PROMPT_TOO_LONG, Callback, ContextScope, ModalPlace, message_modal, secret_found
from bot.slack.rendering.words.at_once import NO_RECORD, STILL_RECORDING
from bot.slack.rendering.words.forms import ANSWER_MISSING, CHANNEL_MISSING, NOT_RECORDED_HERE, PROMPT_MISSING
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
"""The arguments of the acknowledgement; none closes the modal."""
Submitted = Callable[[dict[str, Any], Person, ModalPlace], Awaitable[Answer]]
_DIRECT_MESSAGE = "D"
"""How the ids of direct messages begin."""


@dataclass(frozen=True)
class ModalListeners:
    """What they stand on."""

    service: ServicePort
    recorder: RequestRecorder
    opener: ModalOpener
    identity: Identity

    def register(self, app: AsyncApp) -> None:
        """Listens for what people do in modals, and for the button of a card that opens one."""
        app.view(Callback.NEW_JOB)(self._on(self._new_job))
        app.view(Callback.HAND_OVER)(self._on(self._hand_over))
        app.view(Callback.FOLLOW_UP)(self._on(self._follow_up))
        app.view(Callback.ANSWER)(self._on(self._answer))
        app.view(Callback.SETTINGS)(self._on(self._settings))
        for callback in Callback:
            app.view_closed(callback)(_acknowledge)  # what was typed is kept already
        app.action({"block_id": Input.PROMPT, "action_id": Input.PROMPT})(self._on_typed)
        app.action({"block_id": Input.SCOPE, "action_id": Input.SCOPE})(self._on_scope)
        app.action(blocks.FOLLOW_UP)(self._on_follow_up_button)
        app.action(blocks.FILL_IN_ANSWER)(self._on_answer_button)
        app.action(blocks.HAND_OVER)(self._on_hand_over_button)

    def _on(self, submitted: Submitted) -> Any:
        async def on_submission(body: dict[str, Any], ack: AsyncAck) -> None:
            await ack(**await submitted(body, actor(body, self.identity), place_of(body)))

        return on_submission

    # -- submissions: each returns what its acknowledgement says ------------------------------------------------------

    async def _new_job(self, body: dict[str, Any], person: Person, place: ModalPlace) -> Answer:
        prompt, channel_id = _prompt_in(body), place.channel_id or channel_in(body, Input.CHANNEL)
        errors = _prompt_errors(prompt) | ({} if channel_id else {Input.CHANNEL: CHANNEL_MISSING})
        if errors:
            return _errors(errors)
        asked = _asked(body, person, channel_id, prompt, WayIn.MODAL)
        return await self._recorded(self.service.start(asked), body, person, place, channel_id)

    async def _hand_over(self, body: dict[str, Any], person: Person, place: ModalPlace) -> Answer:
        """The secrets that were in the context are masked already; one that is there was put back, or typed."""
        prompt, context = _prompt_in(body), texts_in(body, f"{Input.CONTEXT}/")
        found = {block_id: self.opener.masker.mask(text).kinds for block_id, text in context}
        errors = {block_id: secret_found(kinds) for block_id, kinds in found.items() if kinds}
        errors |= _prompt_errors(prompt)
        if errors:
            return _errors(errors)
        asked = replace(
            _asked(body, person, place.channel_id, prompt, WayIn.SHORTCUT),
            thread_ts=place.thread_ts or place.message_ts,
            origin=_origin(place),
            attachments=Attachments(_files(place)),
            context=RequestContext("\n".join(displayable(text) for _, text in context)),
        )
        return await self._recorded(self.service.start(asked), body, person, place, place.channel_id)

    async def _follow_up(self, body: dict[str, Any], person: Person, place: ModalPlace) -> Answer:
        text = _prompt_in(body)
        if errors := _prompt_errors(text):
            return _errors(errors)
        written = Written(person, place.thread_id, text, _source_key(body))
        return await self._followed_up(written, body, place, Input.PROMPT)

    async def _answer(self, body: dict[str, Any], person: Person, place: ModalPlace) -> Answer:
        """Sends the answers as a message, as the job API takes them: a line each, named by its title unless alone."""
        answers = answers_in(body)
        missing = [each.block_id for each in answers if each.is_required and not each.text]
        if not any(each.text for each in answers):
            missing = missing or [answers[0].block_id if answers else Input.ANSWER]
        if missing:
            return _errors(dict.fromkeys(missing, ANSWER_MISSING))
        lines = [each.text if len(answers) == 1 else f"{each.title}: {each.text}" for each in answers if each.text]
        written = Written(person, place.thread_id, displayable("\n".join(lines)), _source_key(body))
        return await self._followed_up(written, body, place, answers[0].block_id)

    async def _followed_up(self, written: Written, body: dict[str, Any], place: ModalPlace, at: str) -> Answer:
        """Records a follow-up; what went wrong is said at the input with the block id `at`."""
        known: list[bool] = []

        async def record() -> None:
            known.append(await self.service.follow_up(written))

        answer = await self._recorded(record(), body, written.person, place, place.channel_id, at=at)
        return answer if answer or all(known) else _errors({at: NO_RECORD})

    async def _settings(self, body: dict[str, Any], person: Person, place: ModalPlace) -> Answer:
        quiet = choice_in(body, Input.TELLING) == EndNotification.QUIET
        preference = Preference(choice_in(body, Input.PROJECT), quiet)
        outcome = await self.recorder.record_interaction(
            self.service.save_preference(person.id, preference), person, place.channel_id
        )
        return _errors({Input.TELLING: NOT_RECORDED_HERE}) if outcome is RecordingOutcome.FAILED else {}

    async def _recorded(
        self,
        call: Coroutine[Any, Any, None],
        body: dict[str, Any],
        person: Person,
        place: ModalPlace,
        channel_id: str,
        *,
        at: str = Input.PROMPT,
    ) -> Answer:
        """Records it. The text is forgotten once that is done, and stays where it is if not."""
        outcome = await self.recorder.record_interaction(call, person, channel_id)
        if outcome is RecordingOutcome.FAILED:
            return _errors({at: NOT_RECORDED_HERE})
        if outcome is RecordingOutcome.LATE:
            return {"response_action": "update", "view": message_modal(STILL_RECORDING)}
        if at == Input.PROMPT:
            self.opener.drafts.forget(DraftKey(person.id, place.draft_key), view_id=view_id(body))
        return {}

    # -- what people do before they submit ----------------------------------------------------------------------------

    async def _on_typed(self, body: dict[str, Any], ack: AsyncAck) -> None:
        person, typed = actor(body, self.identity), text_at(first_item_at(body, "actions"), "value")
        if person.id:
            self.opener.drafts.keep(DraftKey(person.id, place_of(body).draft_key), typed, view_id=view_id(body))
        await ack()

    async def _on_scope(self, body: dict[str, Any], ack: AsyncAck) -> None:
        scope = text_at(first_item_at(body, "actions"), "selected_option", "value")
        place = replace(place_of(body), scope=scope)
        self.opener.change_scope(shown_view(body), actor(body, self.identity), place)
        await ack()

    async def _on_follow_up_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        thread_id = text_at(first_item_at(body, "actions"), "value")
        channel_id = text_at(body, "channel", "id") or text_at(body, "container", "channel_id")
        place = ModalPlace(channel_id=channel_id, thread_id=thread_id)
        self.opener.follow_up(text_at(body, "trigger_id"), actor(body, self.identity), place)
        await ack()

    async def _on_answer_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        thread_id, _, encoded = text_at(first_item_at(body, "actions"), "value").partition("/")
        channel_id = text_at(body, "channel", "id") or text_at(body, "container", "channel_id")
        if fields := decoded_fields(encoded):
            place = ModalPlace(channel_id=channel_id, thread_id=thread_id)
            self.opener.answer(text_at(body, "trigger_id"), actor(body, self.identity), place, fields)
        await ack()

    async def _on_hand_over_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        message_ts, _, thread_ts = text_at(first_item_at(body, "actions"), "value").partition("/")
        channel_id = text_at(body, "channel", "id") or text_at(body, "container", "channel_id")
        if channel_id and message_ts:
            place = ModalPlace(channel_id, thread_ts, message_ts, scope=ContextScope.MESSAGE)
            self.opener.hand_over_forwarded(text_at(body, "trigger_id"), actor(body, self.identity), place)
        await ack()


def open_job_modal(opener: ModalOpener, body: dict[str, Any], identity: Identity, options: Options) -> None:
    """Opens the modal for a job in answer to a slash command without a prompt, in the background. In a direct message,
    which may be between people, it asks for the channel.
    """
    channel_id = text_at(body, "channel_id")
    place = ModalPlace(channel_id="" if channel_id.startswith(_DIRECT_MESSAGE) else channel_id)
    opener.new_job(text_at(body, "trigger_id"), actor(body, identity), place, options)


async def _acknowledge(ack: AsyncAck) -> None:
    await ack()


def _asked(body: dict[str, Any], person: Person, channel_id: str, prompt: str, way_in: WayIn) -> NewJob:
    quiet = choice_in(body, Input.TELLING) == EndNotification.QUIET
    project = choice_in(body, Input.PROJECT)
    return NewJob(person, channel_id, prompt, _source_key(body), way_in, project_said=project, quiet=quiet)


def _origin(place: ModalPlace) -> ThreadOrigin:
    """In a direct message all is meant for Pagehand; elsewhere the message is part of others' conversation."""
    return ThreadOrigin.REQUEST if place.channel_id.startswith(_DIRECT_MESSAGE) else ThreadOrigin.CONVERSATION


def _prompt_in(body: dict[str, Any]) -> str:
    return displayable(text_in(body, Input.PROMPT)).strip()


def _prompt_errors(prompt: str) -> dict[str, str]:
    if not prompt:
        return {Input.PROMPT: PROMPT_MISSING}
    return {Input.PROMPT: PROMPT_TOO_LONG} if len(prompt) > MAX_PROMPT else {}


def _files(place: ModalPlace) -> tuple[SlackFile, ...]:
    """The view keeps no more of files than their ids and names."""
    names = dict(zip(place.files, place.file_names, strict=False))
    return tuple(SlackFile(file_id, names.get(file_id, ""), must_look_up=True) for file_id in place.files)


def _source_key(body: dict[str, Any]) -> str:
    """A view can be submitted again where that failed, and counts once."""
    return f"view/{workspace_id(body)}/{view_id(body)}"


def _errors(errors: Mapping[str, str]) -> Answer:
    return {"response_action": "errors", "errors": {**errors}}
