"""What people act in."""

from dataclasses import dataclass

from bot.workspace.delivery.interactions import Interactions
from bot.workspace.delivery.view_interactions import ViewInteractions
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.state import State
from bot.workspace.model.views import Views
from bot.workspace.wire.rendering import Renderer


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
    views: Views
    interactions: Interactions
    view_interactions: ViewInteractions
