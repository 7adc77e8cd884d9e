"""``auth.test`` and ``apps.connections.open``: what the app asks at its start."""

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.method import Method, MethodCall


def connections_open(call: MethodCall) -> Json:
    if not call.app.socket_mode:
        raise SlackError("socket_mode_not_enabled")
    return {"url": call.open_socket_url()}


def auth_test(call: MethodCall) -> Json:
    return {
        "url": f"{call.origin}/",
        "team": call.state.team.name,
        "user": call.app.name,
        "team_id": call.state.team.id,
        "user_id": call.app.bot_user_id,
        "bot_id": call.app.bot_id,
        "is_enterprise_install": False,
    }


METHODS = {
    "auth.test": Method(auth_test, per_minute=600),
    "apps.connections.open": Method(connections_open, app_token=True, per_minute=60),
}
