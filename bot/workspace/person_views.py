"""What a person does with the app's modals and Home tab. Tests and the page use it alike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bot.workspace.delivery.deliveries import Deliveries, InteractionResult, deliver_interaction
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.elements import Element, InputValue
from bot.workspace.model.entities import Channel, Json, SlackError, User
from bot.workspace.model.state import State
from bot.workspace.model.views import MALFORMED, OpenViews, View, errors_by_app, errors_in_inputs
from bot.workspace.wire.interaction_payloads import InteractionPayloads, find_action
from bot.workspace.wire.rendering import Renderer
from bot.workspace.wire.views import checked_view


@dataclass(frozen=True)
class ActorContext:
    """The workspace that people act in, its app, and the parts that reach the app.

    Args:
        state: The workspace.
        app: The app; people can also write to it directly.
        renderer: Renders forwarded messages.
        views: The modals and Home tabs.
        payloads: Builds the payloads that tell the app what people did.
        deliveries: Delivers them.
    """

    state: State
    app: AppConfig
    renderer: Renderer
    views: OpenViews
    payloads: InteractionPayloads
    deliveries: Deliveries

    async def deliver(self, payload: Json) -> InteractionResult:
        """Delivers an interaction and returns the outcome."""
        return await deliver_interaction(self.deliveries, payload)


class PersonViews:
    """The modals and the Home tab of one person.

    Without a view id, methods use the modal, or Home if no modal is open. What Slack would not let the person do raises
    SlackError: ``not_found`` for a missing view, ``action_not_found`` for a missing element, ``invalid_option`` for a
    value that is not offered.

    Args:
        user: The person.
        context: The workspace and the app.
        find_channel: Returns a channel that the person sees, by name or id.
    """

    def __init__(self, user: User, context: ActorContext, find_channel: Callable[[str], Channel]) -> None:
        self._user = user
        self._context = context
        self._views = context.views
        self._find_channel = find_channel

    # seeing

    @property
    def top(self) -> View | None:
        """The open modal; None if none is open."""
        return self._views.modal(self._user.id)

    def home(self) -> View | None:
        """Returns the Home tab as the app last published it; None if it never did."""
        return self._views.home(self._user.id)

    def find(self, view_id: str | None) -> View:
        """Returns the open view with this id; without an id, the modal or else Home.

        Raises:
            SlackError: ``not_found`` if it is closed.
        """
        for view in (self.top, self.home()):
            if view is not None and view_id in {None, view.id}:
                return view
        raise SlackError("not_found")

    # acting

    async def open_home(self, tab: Literal["home", "messages"] = "home") -> View | None:
        """Opens the app's Home or Messages tab and tells the app. Returns the content of the Home tab.

        Raises:
            SlackError: ``tab_disabled`` if the app has no such tab or the person belongs to another organization.
        """
        app, state = self._context.app, self._context.state
        if (tab == "home" and not app.home_tab) or self._user.team_id != state.team.id:
            raise SlackError("tab_disabled")
        state.open_home(app.bot_user_id, self._user.id, tab)
        return self.home()

    async def enter(
        self,
        action_id: str,
        value: InputValue,
        *,
        block_id: str | None = None,
        view_id: str | None = None,
        dispatch: bool = True,
    ) -> InteractionResult:
        """Enters or chooses a value. Tells the app at once if the element says so.

        Args:
            action_id: The element's id.
            value: Text; the value of one or several options; a channel's name or id; None for nothing.
            block_id: Its block's id, needed if several blocks use the same action id.
            view_id: The view.
            dispatch: False while the person is still typing, so that the app is not told yet.
        """
        view = self.find(view_id)
        element = view.element(action_id, block_id)
        held = self._views.enter(view, element, self._named(element, value))
        if not (dispatch and element.dispatches):
            return InteractionResult(ok=True)
        return await self._tell(view, held | {"block_id": element.block_id, "action_id": element.action_id})

    async def press(
        self, action_id: str, *, block_id: str | None = None, value: str | None = None, view_id: str | None = None
    ) -> InteractionResult:
        """Presses a button, or chooses from an overflow menu by ``value``, and waits for the app's acknowledgement."""
        view = self.find(view_id)
        return await self._tell(view, find_action(view.blocks, action_id, block_id, value))

    async def _tell(self, view: View, action: Json) -> InteractionResult:
        """Tells the app that an element was used. ``action`` describes it in the payload."""
        return await self._context.deliver(self._context.payloads.view_actions(self._user, view, action))

    async def submit(self, view_id: str | None = None) -> InteractionResult:
        """Submits a modal. Errors in inputs are in the ``errors`` of the result and of the view.

        Those that Slack itself finds are shown at once, without asking the app.
        """
        view = self.find(view_id)
        if view.submit is None:
            raise SlackError("action_not_found")
        if errors := errors_in_inputs(view):
            self._views.show_errors(view, errors)
            return InteractionResult(ok=False, error="invalid_input", errors=errors)
        if view.errors:
            self._views.show_errors(view, {})
        result = await self._context.deliver(self._context.payloads.view_submission(self._user, view))
        if not result.ok:
            return result
        try:
            return self._answer(view, result.payload or {})
        except SlackError:
            return InteractionResult(ok=False, error=MALFORMED, payload=result.payload)

    def _answer(self, view: View, payload: Json) -> InteractionResult:
        """Carries out the acknowledgement of a submission.

        Raises:
            SlackError: Slack does not understand it; the view stays as it is.
        """
        match payload.get("response_action"):
            case None if not payload:
                self._views.close(view)
            case "errors":
                errors = errors_by_app(view, payload.get("errors"))
                self._views.show_errors(view, errors)
                return InteractionResult(ok=True, payload=payload, errors=errors)
            case "update":
                self._views.update(view, checked_view(payload.get("view"), "modal"))
            case _:
                raise SlackError(MALFORMED)
        return InteractionResult(ok=True, payload=payload)

    async def close(self, view_id: str | None = None, *, clear: bool = False) -> InteractionResult:
        """Closes a modal, by the button at its bottom, or with ``clear`` by the cross at its top.

        The app hears of it with ``notify_on_close``.
        """
        view = self.find(view_id)
        self._views.close(view)
        if not view.notifies_on_close:
            return InteractionResult(ok=True)
        return await self._context.deliver(self._context.payloads.view_closed(self._user, view, is_cleared=clear))

    def _named(self, element: Element, value: InputValue) -> InputValue:
        """Returns the value with the channel's id instead of its name."""
        if not isinstance(value, str) or not value:
            return value
        return self._find_channel(value).id if element.type == "conversations_select" else value
