"""``usergroups.*``."""

from bot.workspace.model.entities import Json, UserGroup
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.method import Method, MethodCall


def list_groups(call: MethodCall) -> Json:
    """Returns the groups of people; who is in them only where that is asked for."""
    arguments = call.arguments
    groups = [_group(call, group) for group in call.state.groups.values()]
    for body, group in zip(groups, call.state.groups.values(), strict=True):
        if arguments.flag("include_users"):
            body["users"] = list(group.users)
        if arguments.flag("include_count"):
            body["user_count"] = len(group.users)
    return {"usergroups": groups}


def list_users(call: MethodCall) -> Json:
    group = call.state.groups.get(call.arguments.required("usergroup"))
    if group is None:
        raise SlackError("no_such_subteam")
    return {"users": list(group.users)}


def _group(call: MethodCall, group: UserGroup) -> Json:
    return {
        "id": group.id,
        "team_id": call.state.team.id,
        "is_usergroup": True,
        "is_subteam": True,
        "name": group.name,
        "description": "",
        "handle": group.handle,
        "is_external": False,
        "date_create": 0,
        "date_update": 0,
        "date_delete": 0,
        "auto_type": None,
        "auto_provision": False,
        "prefs": {"channels": [], "groups": []},
    }


METHODS = {
    "usergroups.list": Method(list_groups, "usergroups:read", per_minute=20),
    "usergroups.users.list": Method(list_users, "usergroups:read", per_minute=20),
}
