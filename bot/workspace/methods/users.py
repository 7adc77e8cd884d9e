"""``users.*``."""

from bot.workspace.call import Call, Method
from bot.workspace.errors import SlackError
from bot.workspace.methods.pages import page_of
from bot.workspace.models import Json


def info(call: Call) -> Json:
    person = call.state.people.get(call.arguments.required("user"))
    if person is None:
        raise SlackError("user_not_found")
    return {"user": call.rendering.person(person)}


def list_users(call: Call) -> Json:
    people = [person for person in call.state.people.values() if person.team_id == call.state.team.id]
    page, metadata = page_of(people, call.arguments, default=1000)
    members = [call.rendering.person(person) for person in page]
    return {"members": members, "cache_ts": int(call.state.now()), "response_metadata": metadata}


METHODS = {
    "users.info": Method(info, "users:read", per_minute=100),
    "users.list": Method(list_users, "users:read", per_minute=20),
}
