"""``apps.*``, ``auth.*``, ``bots.*``, ``users.*`` and ``usergroups.*``: the app, its manifests, and who is who."""

import json

from bot.workspace.model.app_config import validate
from bot.workspace.model.entities import Json, SlackError, UserGroup
from bot.workspace.web_api.method import Method, MethodCall, TokenKind


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
    return {"id": group.id, "team_id": call.state.team.id, "name": group.name, "handle": group.handle}


def manifest_create(call: MethodCall) -> Json:
    app = call.manifests.create(_manifest(call))
    return {"app_id": app.app_id, "credentials": {"signing_secret": app.signing_secret}}


def manifest_export(call: MethodCall) -> Json:
    return {"manifest": call.manifests.export(call.arguments.required("app_id"))}


def manifest_update(call: MethodCall) -> Json:
    app_id = call.arguments.required("app_id")
    return {"app_id": app_id, "permissions_updated": call.manifests.update(app_id, _manifest(call))}


def manifest_validate(call: MethodCall) -> Json:
    if call.arguments.given("app_id"):
        call.manifests.export(call.arguments.required("app_id"))
    validate(_manifest(call))
    return {}


def _manifest(call: MethodCall) -> Json:
    """Returns the manifest, which Slack takes as a text of JSON."""
    try:
        manifest = json.loads(call.arguments.required("manifest"))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise SlackError("invalid_manifest", detail={"errors": [{"message": "not a JSON object", "pointer": "/"}]})
    return manifest


METHODS = {
    "apps.connections.open": Method(connections_open, token=TokenKind.APP),
    "auth.test": Method(auth_test),
    "bots.info": Method(bot_info, "users:read"),
    "users.info": Method(user_info, "users:read"),
    "usergroups.list": Method(list_groups, "usergroups:read"),
    "usergroups.users.list": Method(list_group_members, "usergroups:read"),
    "apps.manifest.create": Method(manifest_create, token=TokenKind.CONFIGURATION),
    "apps.manifest.export": Method(manifest_export, token=TokenKind.CONFIGURATION),
    "apps.manifest.update": Method(manifest_update, token=TokenKind.CONFIGURATION),
    "apps.manifest.validate": Method(manifest_validate, token=TokenKind.CONFIGURATION),
}
