"""A run's door to its model: starts the relay behind it, and gives the program its address."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bot.errors import ConfigError
from bot.jobserver.egress.model_login import ModelLogin, login_of
from bot.jobserver.egress.model_relay import RelayedModel, model_relay
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Door, Program
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, SandboxSettings
from bot.jobserver.usage import Spent

_PORT = 8701
"""Inside the sandbox, whose own loopback interface has nothing else."""
RELAY_ADDRESS = f"http://127.0.0.1:{_PORT}"
MODEL_URL, MODEL_KEY = "{model_url}", "{model_key}"
"""Placeholders for the model's address and key in settings."""
_NOT_COUNTED = (
    "PAGEHAND_JOBSERVER_BUDGET counts what the model relay passes on, and the relay is not in use: it needs "
    "bubblewrap, EGRESS other than open, and a key that the relay supports; or leave the budget out"
)


@dataclass(frozen=True)
class OpenedModel:
    """A door that is open for one run. `key` is the real key, which must not be shown."""

    run: RelayedModel
    variables: Mapping[str, str] = field(repr=False)
    address: str
    key: str = field(repr=False)

    @property
    def doors(self) -> tuple[Door, ...]:
        return (Door(_PORT, self.run.socket),)

    @property
    def fault(self) -> str | None:
        """Why the model's last answer to the agent's own work is not a complete one."""
        return self.run.last.fault if self.run.last else None

    def given_to(self, program: Program) -> Program:
        """Returns a program that knows the relay's address, but not the real key."""
        kept = {name: value for name, value in program.environment.items() if self.key not in value}
        arguments = tuple(word.replace(MODEL_URL, self.address) for word in program.arguments)
        return Program(arguments, {**kept, **self.variables}, (*program.doors, *self.doors))

    @property
    def in_words(self) -> str:
        """One line for the job's log."""
        tokens = self.run.tokens
        return f"requests to its model: {self.run.requests}, tokens sent: {tokens.sent}, answered: {tokens.answered}"


@dataclass(frozen=True)
class ModelDoor:
    """How a program's runs reach their model. `own`: the variables by which it logs in itself."""

    login: ModelLogin
    own: frozenset[str] = frozenset()

    def without_login(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Returns what the program may get of some variables: not those of its login, or with the key in them."""
        key = self.login.read(self.login.key_variable)
        return {name: value for name, value in variables.items() if name not in self.own and not (key and key in value)}


@asynccontextmanager
async def opened_model(
    door: ModelDoor | None, refused: Callable[[str], None], spent: Callable[[Spent], None] | None = None
) -> AsyncIterator[OpenedModel | None]:
    """Opens a door for one run, if there is one; `refused` and `spent` are told what the relay refuses and counts.

    Raises:
        EditError: it cannot be opened.
    """
    if door is None:
        yield None
        return
    login = door.login
    async with AsyncExitStack() as stack:
        try:
            key = login.key()
            run = await stack.enter_async_context(model_relay(login, refused))
        except ConfigError as error:
            raise EditError(str(error)) from None
        except OSError as error:
            raise EditError(f"its model's relay cannot be started: {error.strerror or error}") from error
        run.tell = spent
        address = f"{RELAY_ADDRESS}{login.api.suffix}"
        yield OpenedModel(run, login.variables(address, run.token), address, key)


def relays_models(settings: SandboxSettings) -> bool:
    """Whether programs reach their model by the relay, having no network of their own."""
    return settings.sandbox != "none" and settings.egress != OPEN


def check_budget(settings: JobServerSettings, door: ModelDoor | None) -> None:
    """Raises JobServerError for a budget without a relay that counts tokens."""
    if settings.budget.is_set and door is None:
        raise JobServerError(_NOT_COUNTED)


def door_of_settings(settings: JobServerSettings) -> ModelDoor | None:
    """Returns the door to the model of the MODEL_ settings, for a program that is not a named agent.

    Raises:
        JobServerError: its address, or the proxy on the way there, cannot be used.
    """
    login = login_of(settings, settings.model)
    if login is None or not relays_models(settings):
        return None
    login.check_address()
    return ModelDoor(login)
