"""Who may do what where."""

from bot.domain.models import Person, Thread


def may_steer(person: Person, thread: Thread) -> bool:
    """Whether a person may steer a thread's job: people of its own workspace may, others may not."""
    return not person.team_id or person.team_id == thread.team_id
