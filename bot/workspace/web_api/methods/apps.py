"""``apps.connections.open``."""

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.method import Method, MethodCall


def connections_open(call: MethodCall) -> Json:
    if not call.app.socket_mode:
        raise SlackError("socket_mode_not_enabled")
    return {"url": call.open_socket_url()}


METHODS = {"apps.connections.open": Method(connections_open, app_token=True, per_minute=60)}
