"""``apps.manifest.*`` and what they mean for the app's scopes, as Slack documents them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.workspace_world import running

from bot.workspace import WorkspaceServer

MANIFEST: dict[str, Any] = {
    "display_information": {"name": "Docs bot", "background_color": "#112233"},
    "oauth_config": {"scopes": {"bot": ["chat:write", "users:read"]}},
    "settings": {"socket_mode_enabled": True},
}


@pytest.fixture
async def workspace() -> AsyncIterator[WorkspaceServer]:
    async with running(is_installed=False) as workspace:
        yield workspace


async def call(workspace: WorkspaceServer, method: str, manifest: object) -> dict[str, Any]:
    client = AsyncWebClient(workspace.credentials.configuration_token, base_url=workspace.api_url)
    answer = (await client.api_call(f"apps.manifest.{method}", json={"manifest": json.dumps(manifest)})).data
    assert isinstance(answer, dict)
    return answer


async def test_another_app_is_another_one(workspace: WorkspaceServer) -> None:
    first, second = [await call(workspace, "create", MANIFEST) for _ in range(2)]
    assert first["app_id"] != second["app_id"]
    assert first["credentials"]["signing_secret"] != second["credentials"]["signing_secret"]


@pytest.mark.parametrize(
    ("manifest", "pointer"),
    [
        ({}, "/display_information"),
        ([], "/"),
        (MANIFEST | {"settings": {"interactivity": {"is_enabled": True}}}, "/settings/interactivity"),
        (MANIFEST | {"settings": {"event_subscriptions": {"bot_events": ["x"]}}}, "/settings/event_subscriptions"),
    ],
)
async def test_a_manifest_that_breaks_a_rule_is_refused_with_its_place(
    workspace: WorkspaceServer, manifest: Any, pointer: str
) -> None:
    for method in ("validate", "create"):
        with pytest.raises(SlackApiError) as caught:
            await call(workspace, method, manifest)
        assert caught.value.response["error"] == "invalid_manifest"
        assert [error["pointer"] for error in caught.value.response["errors"]] == [pointer]
    assert (await call(workspace, "validate", MANIFEST))["ok"] is True
