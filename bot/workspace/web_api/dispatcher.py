"""Carries out Web API calls after checking their token, scope and, if switched on, rate limit."""

import math
from collections import deque
from collections.abc import Callable

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.triggers import Triggers
from bot.workspace.model.views import OpenViews
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.web_api.methods import METHODS
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.rendering import Renderer

POSTS = frozenset({"chat.postMessage", "chat.postEphemeral"})
POST_BURST = 3
MINUTE = 60.0


class RateLimits:
    """Slack's rate limits: about one post per second and channel with short bursts; other methods by their tier.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._calls: dict[str, deque[float]] = {}

    def retry_after(self, method: str, channel: str, per_minute: int) -> int | None:
        """Returns whole seconds to wait, or None after counting an allowed call."""
        if method in POSTS:
            return self._count(f"{method} {channel}", POST_BURST, float(POST_BURST))
        return self._count(method, per_minute, MINUTE)

    def _count(self, key: str, allowed: int, seconds: float) -> int | None:
        now = self._now()
        times = self._calls.setdefault(key, deque())
        while times and times[0] <= now - seconds:
            times.popleft()
        if len(times) >= allowed:
            return max(1, math.ceil(times[0] + seconds - now))
        times.append(now)
        return None


class Dispatcher:
    """Finds the method of a call and carries it out.

    Args:
        state: The workspace.
        app: The app that calls.
        renderer: Renders users, channels and messages for the app.
        credentials: The valid tokens.
        rate_limits: Slack's rate limits; None for none.
        views: The modals and Home tabs.
        triggers: The trigger ids that open modals.
        origin: Returns the workspace's own address.
        open_socket_url: Returns a new URL for a Socket Mode connection.
    """

    def __init__(
        self,
        state: State,
        app: AppConfig,
        renderer: Renderer,
        credentials: Credentials,
        rate_limits: RateLimits | None,
        *,
        views: OpenViews,
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
        """Returns the method's answer, without ``ok``.

        Raises:
            SlackError: The call is refused.
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
