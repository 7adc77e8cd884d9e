"""``users.*`` and ``bots.info``."""

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.web_api.methods.pagination import page_of


def info(call: MethodCall) -> Json:
    user = call.state.users.get(call.arguments.required("user"))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": call.renderer.user(user)}


def list_users(call: MethodCall) -> Json:
    users = [user for user in call.state.users.values() if user.team_id == call.state.team.id]
    page, metadata = page_of(users, call.arguments, default=1000)
    members = [call.renderer.user(user) for user in page]
    return {"members": members, "cache_ts": int(call.state.now()), "response_metadata": metadata}


def bot_info(call: MethodCall) -> Json:
    if call.arguments.required("bot") != call.app.bot_id:
        raise SlackError("bot_not_found")
    return {"bot": call.renderer.bot_profile()}


METHODS = {
    "bots.info": Method(bot_info, "users:read"),
    "users.info": Method(info, "users:read", per_minute=100),
    "users.list": Method(list_users, "users:read", per_minute=20),
}
