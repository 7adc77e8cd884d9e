"""Carries Web API calls out: which method, whether this token may call it, and whether it has called too often."""

from collections.abc import Callable

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.triggers import Triggers
from bot.workspace.model.views import Views
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.web_api.methods import METHODS
from bot.workspace.web_api.rate_limits import RateLimits
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.rendering import Renderer


class Dispatcher:
    """Finds a call's method and lets it answer.

    Args:
        state: The workspace.
        app: The app that calls.
        renderer: Shows users, channels and messages as the app sees them.
        credentials: The tokens that are good.
        rate_limits: Slack's; None lets every call pass.
        views: The modals and Home tabs.
        triggers: The ids with which the app may open a modal.
        origin: Returns the workspace's own address.
        open_socket_url: Makes an address for a Socket Mode connection.
    """

    def __init__(
        self,
        state: State,
        app: AppConfig,
        renderer: Renderer,
        credentials: Credentials,
        rate_limits: RateLimits | None,
        *,
        views: Views,
        triggers: Triggers,
        origin: Callable[[], str],
        open_socket_url: Callable[[], str],
    ) -> None:
        self.state = state
        self.app = app
        self._renderer = renderer
        self._views = views
        self._triggers = triggers
        self._credentials = credentials
        self._rate_limits = rate_limits
        self._origin = origin
        self._open_socket_url = open_socket_url

    def execute(self, name: str, token: str, arguments: Arguments) -> Json:
        """Returns what the method answers, without ``ok``.

        Raises:
            SlackError: Why the call is refused.
        """
        method = METHODS.get(name)
        if method is None:
            raise SlackError("unknown_method", detail={"req_method": name})
        self._credentials.check(token, app_token=method.app_token)
        call = self._call(arguments)
        if method.scope:
            call.require_scope(method.scope)
        self._check_rate_limit(name, method, arguments)
        return method.handler(call)

    def _call(self, arguments: Arguments) -> MethodCall:
        views, triggers, origin = self._views, self._triggers, self._origin()
        return MethodCall(
            self.state, self.app, self._renderer, views, triggers, arguments, origin, self._open_socket_url
        )

    def _check_rate_limit(self, name: str, method: Method, arguments: Arguments) -> None:
        if self._rate_limits is None:
            return
        channel = str(arguments.as_dict().get("channel", ""))
        seconds = self._rate_limits.retry_after(name, channel, method.per_minute)
        if seconds is not None:
            raise SlackError("ratelimited", detail={"retry_after": seconds})
