"""Who may do what where."""

from bot.domain.requests import Person
from bot.domain.threads import Thread


def may_steer(person: Person, thread: Thread) -> bool:
    """Whether a person may steer a thread's job: people of its own workspace may. Others, and whoever is not known to
    be one of them, may not.
    """
    return bool(person.team_id) and person.team_id == thread.team_id
