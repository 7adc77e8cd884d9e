"""``apps.*``, ``auth.*``, ``bots.*``, ``users.*`` and ``usergroups.*``: the app's own connection and who is who."""

from bot.workspace.model.entities import Json, UserGroup
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.credentials import TokenKind
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


def user_info(call: MethodCall) -> Json:
    user = call.state.users.get(call.arguments.required("user"))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": call.renderer.user(user)}


def bot_info(call: MethodCall) -> Json:
    if call.arguments.required("bot") != call.app.bot_id:
        raise SlackError("bot_not_found")
    return {"bot": call.renderer.bot_profile()}


def list_groups(call: MethodCall) -> Json:
    """Returns the user groups without their members."""
    return {"usergroups": [_group(call, group) for group in call.state.groups.values()]}


def list_group_members(call: MethodCall) -> Json:
    group = call.state.groups.get(call.arguments.required("usergroup"))
    if group is None:
        raise SlackError("no_such_subteam")
    return {"users": list(group.users)}


def _group(call: MethodCall, group: UserGroup) -> Json:
    names = {"id": group.id, "team_id": call.state.team.id, "name": group.name, "handle": group.handle}
    return names | {"is_usergroup": True, "is_external": False, "date_delete": 0}


METHODS = {
    "apps.connections.open": Method(connections_open, token=TokenKind.APP),
    "auth.test": Method(auth_test),
    "bots.info": Method(bot_info, "users:read"),
    "users.info": Method(user_info, "users:read"),
    "usergroups.list": Method(list_groups, "usergroups:read"),
    "usergroups.users.list": Method(list_group_members, "usergroups:read"),
}
