"""What a person does with the app's modals and with its Home tab, for tests and for the page alike."""

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
    """The workspace, the app, and the ways to it.

    Args:
        state: The workspace.
        app: The app, to which people can talk directly.
        renderer: Shows messages that are forwarded.
        views: The modals and Home tabs.
        interactions: Brings commands, shortcuts and presses to the app.
        view_interactions: Brings what is done in views to the app.
    """

    state: State
    app: AppConfig
    renderer: Renderer
    views: OpenViews
    interactions: Interactions
    view_interactions: ViewInteractions


class PersonViews:
    """The modals and the Home tab of one person.

    Where no view is named, the topmost modal is meant, or Home where none is open. A modal that lies under another
    cannot be used. What Slack would not let the person do raises SlackError: ``not_found`` for a view that is not
    there, ``action_not_found`` for an element that is not, ``invalid_option`` for what cannot be chosen.

    Args:
        user: Whose they are.
        context: The workspace, the app, and the ways to it.
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

    def stack(self) -> list[View]:
        """Returns the open modals, the one that the person sees last."""
        return self._views.stack(self._user.id)

    @property
    def top(self) -> View | None:
        """The modal that the person sees; None where none is open."""
        stack = self.stack()
        return stack[-1] if stack else None

    def home(self) -> View | None:
        """Returns the Home tab as the app last published it; None if it never did."""
        return self._views.home(self._user.id)

    # doing

    async def open_home(self, tab: HomeTab = "home") -> View | None:
        """Opens the app's Home, or its Messages tab, of which the app is told. Returns what stands on the Home tab.

        Raises:
            SlackError: ``tab_disabled``; the app has no such tab, or the person is of another organization.
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
        """Enters or chooses a value. The app is told at once where the element says so.

        Args:
            action_id: The element's id.
            value: Text; an option's value, or several; a channel's name or id; None for nothing.
            block_id: Its block's id, where several have the same action id.
            view_id: The view.
            dispatch: Whether the person has come to the end of it; False while they are typing.
        """
        view = self._usable(view_id)
        element = view.element(action_id, block_id)
        if not element.holds_a_value:
            raise SlackError("action_not_found")
        given = self._named(element, value)
        return await self._interactions.enter(self._user, view, element, given, dispatch=dispatch)

    async def press(
        self, action_id: str, *, block_id: str | None = None, value: str | None = None, view_id: str | None = None
    ) -> InteractionResult:
        """Presses a button, or chooses from an overflow menu by ``value``, and waits for the acknowledgement."""
        view = self._usable(view_id)
        return await self._interactions.press(self._user, view, find_action(view.blocks, action_id, block_id, value))

    async def submit(self, view_id: str | None = None) -> InteractionResult:
        """Submits a modal. Where something is wrong with an input, the result's ``errors`` and the view's say what."""
        view = self._usable(view_id)
        if view.submit is None:
            raise SlackError("action_not_found")
        return await self._interactions.submit(self._user, view)

    async def close(self, view_id: str | None = None, *, clear: bool = False) -> InteractionResult:
        """Closes a modal as the button at its bottom does; with ``clear`` all of them, as the cross at its top does."""
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
        """Returns a value with ids instead of the names that people read."""
        if not isinstance(value, str) or not value:
            return value
        return self._find_channel(value).id if element.type == "conversations_select" else value
