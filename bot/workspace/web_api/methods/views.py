"""``views.*``."""

from bot.workspace.model.entities import Json, SlackError
from bot.workspace.model.views import View, ViewKind
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.wire.arguments import invalid_argument
from bot.workspace.wire.views import checked_view, rendered_view


def open_view(call: MethodCall) -> Json:
    """Opens a modal."""
    content, trigger = _view(call, "modal"), call.triggers.check(call.arguments.text("trigger_id"))
    view = call.views.open(trigger.user, content, trigger.channel)
    call.triggers.use_up(call.arguments.text("trigger_id"))
    return _answer(call, view)


def update(call: MethodCall) -> Json:
    """Gives a view new content."""
    view = call.views.find(call.arguments.required("view_id"))
    content = _view(call, view.kind)
    _check_hash(call, view)
    return _answer(call, call.views.update(view, content))


def publish(call: MethodCall) -> Json:
    """Gives one person's Home tab its content."""
    user = call.state.users.get(call.arguments.required("user_id"))
    if user is None or user.is_bot:
        raise invalid_argument("invalid `user_id`")
    if not call.app.home_tab:
        raise SlackError("not_enabled")
    content = _view(call, "home")
    if view := call.views.home(user.id):
        _check_hash(call, view)
    return _answer(call, call.views.publish(user.id, content))


def _view(call: MethodCall, kind: ViewKind) -> Json:
    return checked_view(call.arguments.json_value("view", "invalid_arguments"), kind)


def _check_hash(call: MethodCall, view: View) -> None:
    if call.arguments.given("hash") and call.arguments.text("hash") != view.hash:
        raise SlackError("hash_conflict")


def _answer(call: MethodCall, view: View) -> Json:
    return {"view": rendered_view(view, call.state.team, call.app)}


METHODS = {
    "views.open": Method(open_view),
    "views.publish": Method(publish),
    "views.update": Method(update),
}
