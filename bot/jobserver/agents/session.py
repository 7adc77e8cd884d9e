"""A session in which the agent has taken what is wanted of its options."""

from dataclasses import dataclass

from bot.jobserver.agents.connection import AgentConnection
from bot.jobserver.agents.options import Session, Wanted, check_taken, in_words, to_be_set
from bot.jobserver.agents.text import one_line
from bot.jobserver.errors import EditError, NotOfferedError


@dataclass(frozen=True)
class Started:
    """What an agent tells before any turn, for people: the name and version that it gives itself, what is chosen and
    what else there is, or why that cannot be chosen.
    """

    version: str
    options: str = ""
    refusal: str = ""


async def started(connection: AgentConnection, wanted: Wanted, directory: str) -> Started:
    """Begins a session and chooses what is wanted.

    Raises:
        EditError: the agent does not speak the protocol.
    """
    info = (await connection.initialize()).agent_info
    version = one_line(f"{info.name} {info.version}") if info else "it does not tell its version"
    try:
        session = await connection.new_session([directory])
        return Started(version, options=in_words((await chosen(connection, session, wanted)).options))
    except NotOfferedError as error:
        return Started(version, refusal=str(error))
    except EditError:  # of its login, say: a turn tells that, too
        return Started(version)


async def chosen(connection: AgentConnection, session: Session, wanted: Wanted) -> Session:
    """Has the agent take what is wanted, where it has something else.

    Raises:
        NotOfferedError: it does not list that.
    """
    for category, value in wanted.in_order():
        if option := to_be_set(connection.agent, category, value, session.options):
            session = await connection.set_option(session.id, option, value)
            check_taken(connection.agent, category, value, session.options)
    return session
