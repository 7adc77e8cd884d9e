"""``apps.manifest.*``: creating and changing apps, with a configuration token."""

import json

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.manifests import validate
from bot.workspace.web_api.credentials import TokenKind
from bot.workspace.web_api.method import Method, MethodCall


def manifest_create(call: MethodCall) -> Json:
    app = call.manifests.create(_manifest(call))
    credentials = {
        "client_id": f"1.{app.app_id}",
        "client_secret": app.signing_secret[::-1],
        "verification_token": "",
        "signing_secret": app.signing_secret,
    }
    return {
        "app_id": app.app_id,
        "credentials": credentials,
        "oauth_authorize_url": f"{call.origin}/oauth/v2/authorize?client_id={credentials['client_id']}",
    }


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
    "apps.manifest.create": Method(manifest_create, token=TokenKind.CONFIGURATION),
    "apps.manifest.export": Method(manifest_export, token=TokenKind.CONFIGURATION),
    "apps.manifest.update": Method(manifest_update, token=TokenKind.CONFIGURATION),
    "apps.manifest.validate": Method(manifest_validate, token=TokenKind.CONFIGURATION),
}
