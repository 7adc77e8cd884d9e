"""What a person does with the app's modals and Home tab. Tests and the page use it alike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bot.workspace.delivery.interactions import InteractionResult, Interactions
from bot.workspace.delivery.view_interactions import ViewInteractions
from bot.workspace.model.app_config import AppConfig, MessagesTab
from bot.workspace.model.elements import Element, InputValue
from bot.workspace.model.entities import Channel, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.views import OpenViews, View
from bot.workspace.wire.interaction_payloads import find_action
from bot.workspace.wire.rendering import Renderer

HomeTab = Literal["home", "messages"]


@dataclass(frozen=True)
class ActorContext:
    """The workspace that people act in, its app, and the parts that reach the app.

    Args:
        state: The workspace.
        app: The app; people can also write to it directly.
        renderer: Renders forwarded messages.
        views: The modals and Home tabs.
        interactions: Delivers commands, shortcuts and button presses to the app.
        view_interactions: Delivers what people do in views to the app.
    """

    state: State
    app: AppConfig
    renderer: Renderer
    views: OpenViews
    interactions: Interactions
    view_interactions: ViewInteractions


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
        self._state = context.state
        self._app = context.app
        self._views = context.views
        self._interactions = context.view_interactions
        self._find_channel = find_channel

    # seeing

    @property
    def top(self) -> View | None:
        """The open modal; None if none is open."""
        return self._views.modal(self._user.id)

    def home(self) -> View | None:
        """Returns the Home tab as the app last published it; None if it never did."""
        return self._views.home(self._user.id)

    # acting

    async def open_home(self, tab: HomeTab = "home") -> View | None:
        """Opens the app's Home or Messages tab and tells the app. Returns the content of the Home tab.

        Raises:
            SlackError: ``tab_disabled`` if the app has no such tab or the person belongs to another organization.
        """
        there = self._app.home_tab if tab == "home" else self._app.messages_tab is not MessagesTab.OFF
        if not there or self._user.team_id != self._state.team.id:
            raise SlackError("tab_disabled")
        self._state.open_home(self._app.bot_user_id, self._user.id, tab)
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
        view = self._usable(view_id)
        element = view.element(action_id, block_id)
        if not element.has_value:
            raise SlackError("action_not_found")
        given = self._named(element, value)
        return await self._interactions.enter(self._user, view, element, given, dispatch=dispatch)

    async def press(
        self, action_id: str, *, block_id: str | None = None, value: str | None = None, view_id: str | None = None
    ) -> InteractionResult:
        """Presses a button, or chooses from an overflow menu by ``value``, and waits for the app's acknowledgement."""
        view = self._usable(view_id)
        return await self._interactions.press(self._user, view, find_action(view.blocks, action_id, block_id, value))

    async def submit(self, view_id: str | None = None) -> InteractionResult:
        """Submits a modal. Errors in inputs are in the ``errors`` of the result and of the view."""
        view = self._usable(view_id)
        if view.submit is None:
            raise SlackError("action_not_found")
        return await self._interactions.submit(self._user, view)

    async def close(self, view_id: str | None = None, *, clear: bool = False) -> InteractionResult:
        """Closes a modal, by the button at its bottom, or with ``clear`` by the cross at its top."""
        view = self._usable(view_id)
        if view.kind == "home":
            raise SlackError("not_found")
        return await self._interactions.close(self._user, view, clear=clear)

    def _usable(self, view_id: str | None) -> View:
        for view in (self.top, self.home()):
            if view is not None and view_id in {None, view.id}:
                return view
        raise SlackError("not_found")

    def _named(self, element: Element, value: InputValue) -> InputValue:
        """Returns the value with the channel's id instead of its name."""
        if not isinstance(value, str) or not value:
            return value
        return self._find_channel(value).id if element.type == "conversations_select" else value
