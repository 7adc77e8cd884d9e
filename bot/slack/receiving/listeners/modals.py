"""The modals: saves typed text, records submissions, and shows errors at their inputs."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands import asks_for_another_way
from bot.domain.messages import SlackFile
from bot.domain.people import Preference
from bot.domain.requests.new_jobs import NewJob, Written
from bot.domain.requests.request import Attachments, Person, RequestContext, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.jobapi.models import Mode
from bot.ports.service import ServicePort
from bot.runtime.text import displayable
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.payloads.interactions import ViewClickPayload, ViewPayload, user_of
from bot.slack.receiving.payloads.payload import is_direct_message
from bot.slack.receiving.request_recorder import RecordingOutcome, RequestRecorder
from bot.slack.rendering import modals
from bot.slack.rendering.ephemeral_texts import NO_RECORD, STILL_RECORDING
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
"""Arguments of the acknowledgement; without any, the modal closes."""
Submitted = Callable[[ViewPayload, Person, modals.ModalPlace], Awaitable[Answer]]


@dataclass(frozen=True)
class ModalListeners:
    """The listeners and their dependencies."""

    service: ServicePort
    recorder: RequestRecorder
    opener: ModalOpener
    identity: Identity

    def register(self, app: AsyncApp) -> None:
        """Listens to what people do in modals."""
        app.view(modals.Callback.NEW_JOB)(self._on(self._new_job))
        app.view(modals.Callback.HAND_OVER)(self._on(self._hand_over))
        app.view(modals.Callback.FOLLOW_UP)(self._on(self._follow_up))
        app.view(modals.Callback.ANSWER)(self._on(self._answer))
        app.view(modals.Callback.SETTINGS)(self._on(self._settings))
        for callback in modals.Callback:
            app.view_closed(callback)(_acknowledge)  # the typed text is already saved
        app.action({"block_id": modals.Input.PROMPT, "action_id": modals.Input.PROMPT})(self._on_typed)
        app.action({"block_id": modals.Input.SCOPE, "action_id": modals.Input.SCOPE})(self._on_scope)

    def _on(self, submitted: Submitted) -> Any:
        async def on_submission(body: dict[str, Any], ack: AsyncAck) -> None:
            payload = ViewPayload.read(body)
            await ack(**await submitted(payload, user_of(payload, self.identity), payload.view.place))

        return on_submission

    # -- submissions: each returns the arguments of its acknowledgement ------------------------------------------------

    async def _new_job(self, payload: ViewPayload, person: Person, place: modals.ModalPlace) -> Answer:
        prompt, channel_id = _prompt_in(payload), place.channel_id or payload.view.channel(modals.Input.CHANNEL)
        errors = _prompt_errors(prompt) | ({} if channel_id else {modals.Input.CHANNEL: modals.CHANNEL_MISSING})
        errors |= self._plan_errors(payload)
        if errors:
            return _errors(errors)
        asked = _asked(payload, person, channel_id, prompt, WayIn.MODAL)
        return await self._recorded(self.service.start(asked), payload, person, place, channel_id)

    async def _hand_over(self, payload: ViewPayload, person: Person, place: modals.ModalPlace) -> Answer:
        """The context's secrets are already masked; a secret in it was put back, or typed."""
        prompt, context = _prompt_in(payload), payload.view.texts(f"{modals.Input.CONTEXT}/")
        found = {block_id: self.opener.masker.mask(text).kinds for block_id, text in context}
        errors = {block_id: modals.secret_found(kinds) for block_id, kinds in found.items() if kinds}
        errors |= _prompt_errors(prompt) | self._plan_errors(payload)
        if errors:
            return _errors(errors)
        asked = replace(
            _asked(payload, person, place.channel_id, prompt, WayIn.SHORTCUT),
            thread_ts=place.thread_ts or place.message_ts,
            origin=_origin(place),
            attachments=Attachments(_files(place)),
            context=RequestContext("\n".join(displayable(text) for _, text in context)),
        )
        return await self._recorded(self.service.start(asked), payload, person, place, place.channel_id)

    def _plan_errors(self, payload: ViewPayload) -> dict[str, str]:
        view = payload.view
        cannot = self.opener.plans_first(view.place, view.choice(modals.Input.PROJECT)) is None
        return {modals.Input.PLAN: modals.NO_PLAN} if view.ticked(modals.Input.PLAN) and cannot else {}

    async def _follow_up(self, payload: ViewPayload, person: Person, place: modals.ModalPlace) -> Answer:
        text = _prompt_in(payload)
        if errors := _prompt_errors(text):
            return _errors(errors)
        written = Written(person, place.thread_id, text, _source_key(payload))
        return await self._followed_up(written, payload, place, modals.Input.PROMPT)

    async def _answer(self, payload: ViewPayload, person: Person, place: modals.ModalPlace) -> Answer:
        """Sends the answers as a message, as the job API takes them: a line each, named by its title unless alone."""
        answers = payload.view.answers()
        missing = [each.block_id for each in answers if each.is_required and not each.text]
        if not any(each.text for each in answers):
            missing = missing or [answers[0].block_id if answers else modals.Input.ANSWER]
        if missing:
            return _errors(dict.fromkeys(missing, modals.ANSWER_MISSING))
        lines = [each.text if len(answers) == 1 else f"{each.title}: {each.text}" for each in answers if each.text]
        written = Written(person, place.thread_id, displayable("\n".join(lines)), _source_key(payload))
        return await self._followed_up(written, payload, place, answers[0].block_id)

    async def _followed_up(self, written: Written, payload: ViewPayload, place: modals.ModalPlace, at: str) -> Answer:
        """Records a follow-up; an error is shown at the input with the block id `at`."""
        known: list[bool] = []

        async def record() -> None:
            known.append(await self.service.follow_up(written))

        answer = await self._recorded(record(), payload, written.person, place, place.channel_id, at=at)
        return answer if answer or all(known) else _errors({at: NO_RECORD})

    async def _settings(self, payload: ViewPayload, person: Person, place: modals.ModalPlace) -> Answer:
        quiet = payload.view.choice(modals.Input.TELLING) == modals.EndNotification.QUIET
        preference = Preference(payload.view.choice(modals.Input.PROJECT), quiet)
        outcome = await self.recorder.record_interaction(
            self.service.save_preference(person.id, preference), person, place.channel_id
        )
        return _errors({modals.Input.TELLING: modals.NOT_RECORDED_HERE}) if outcome is RecordingOutcome.FAILED else {}

    async def _recorded(
        self,
        call: Coroutine[Any, Any, None],
        payload: ViewPayload,
        person: Person,
        place: modals.ModalPlace,
        channel_id: str,
        *,
        at: str = modals.Input.PROMPT,
    ) -> Answer:
        """Records a submission. Its draft is deleted if that succeeds, and kept if not."""
        outcome = await self.recorder.record_interaction(call, person, channel_id)
        if outcome is RecordingOutcome.FAILED:
            return _errors({at: modals.NOT_RECORDED_HERE})
        if outcome is RecordingOutcome.LATE:
            return {"response_action": "update", "view": modals.message_modal(STILL_RECORDING)}
        if at == modals.Input.PROMPT:
            self.opener.drafts.forget((person.id, place.draft_key), view_id=payload.view.id)
        return {}

    # -- what people do before they submit ----------------------------------------------------------------------------

    async def _on_typed(self, body: dict[str, Any], ack: AsyncAck) -> None:
        click = ViewClickPayload.read(body)
        person, view = user_of(click, self.identity), click.view
        if person.id:
            self.opener.drafts.keep((person.id, view.place.draft_key), click.element.value, view_id=view.id)
        await ack()

    async def _on_scope(self, body: dict[str, Any], ack: AsyncAck) -> None:
        click = ViewClickPayload.read(body)
        place = replace(click.view.place, scope=click.element.selected_option.value)
        self.opener.change_scope(click.view.shown, user_of(click, self.identity), place)
        await ack()


async def _acknowledge(ack: AsyncAck) -> None:
    await ack()


def _asked(payload: ViewPayload, person: Person, channel_id: str, prompt: str, way_in: WayIn) -> NewJob:
    quiet = payload.view.choice(modals.Input.TELLING) == modals.EndNotification.QUIET
    project, agent = payload.view.choice(modals.Input.PROJECT), payload.view.place.agent
    ticked, key = payload.view.ticked(modals.Input.PLAN), _source_key(payload)
    if ticked is not None:
        agent = replace(agent, mode=Mode.PLAN if ticked else Mode.EDIT)
    return NewJob(person, channel_id, prompt, key, way_in, project_said=project, quiet=quiet, agent=agent)


def _origin(place: modals.ModalPlace) -> ThreadOrigin:
    """A direct message is meant for Pagehand; elsewhere the message belongs to other people's conversation."""
    return ThreadOrigin.REQUEST if is_direct_message(place.channel_id) else ThreadOrigin.CONVERSATION


def _prompt_in(payload: ViewPayload) -> str:
    return displayable(payload.view.text(modals.Input.PROMPT)).strip()


def _prompt_errors(prompt: str) -> dict[str, str]:
    if not prompt:
        return {modals.Input.PROMPT: modals.PROMPT_MISSING}
    if asks_for_another_way(prompt):
        return {modals.Input.PROMPT: modals.OPTIONS_IN_FORM}
    return {modals.Input.PROMPT: modals.PROMPT_TOO_LONG} if len(prompt) > modals.MAX_PROMPT else {}


def _files(place: modals.ModalPlace) -> tuple[SlackFile, ...]:
    """The view contains only the ids and names of files."""
    names = dict(zip(place.files, place.file_names, strict=False))
    return tuple(SlackFile(file_id, names.get(file_id, ""), must_look_up=True) for file_id in place.files)


def _source_key(payload: ViewPayload) -> str:
    """A view can be submitted again after a failure, and counts once."""
    return f"view/{payload.workspace_id}/{payload.view.id}"


def _errors(errors: Mapping[str, str]) -> Answer:
    return {"response_action": "errors", "errors": {**errors}}
