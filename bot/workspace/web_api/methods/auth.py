"""``auth.test``."""

from bot.workspace.model.entities import Json
from bot.workspace.web_api.method import Method, MethodCall


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


METHODS = {"auth.test": Method(auth_test, per_minute=600)}
