"""The agent that the settings choose."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.errors import ConfigError
from bot.jobserver.agents.editor import AgentEditor
from bot.jobserver.agents.launch import AgentLaunch, passed_variables, require_model
from bot.jobserver.agents.named import Agent, agent_for
from bot.jobserver.agents.options import Wanted
from bot.jobserver.egress.model_door import ModelDoor, check_budget, door_of_settings, relays_models
from bot.jobserver.egress.model_login import ModelLogin, Read
from bot.jobserver.egress.run_egress import egress_for
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.interface import Sandbox
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.settings import JobServerSettings
from bot.runtime.settings import read_variable

_ITS_OWN = "default"
"""What agents call the model that they would take unasked, in their lists: it is none's name."""


def agent_editor(
    settings: JobServerSettings,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    *,
    limits: RunLimits | None = None,
    time_limit: float | None = None,
    mask: Callable[[str], str] = str,
) -> AgentEditor:
    """Returns the editor that drives the agent; `limits`, and `time_limit` in seconds, instead of the settings' own.

    `mask` takes what this server knows out of the log.

    Raises:
        JobServerError: the agent cannot be used like this.
    """
    launch = agent_launch(settings, environment)
    check_budget(settings, launch.door)
    return AgentEditor(
        launch,
        sandbox,
        limits or RunLimits.for_settings(settings),
        egress_for(settings),
        time_limit=time_limit or settings.time_limit.total_seconds(),
        may_ask=settings.permissions == "ask",
        mask=mask,
    )


def agent_launch(settings: JobServerSettings, environment: Mapping[str, str]) -> AgentLaunch:
    """Returns how the agent is started. Raises JobServerError as `agent_editor` does."""
    agent = agent_for(settings.agent)
    if settings.sandbox != "none":
        agent = replace(agent, mode=agent.mode_in_sandbox or agent.mode)
    require_model(agent, settings.model, settings.agent_home)
    try:
        key = settings.api_key.get_secret_value()
        passed = passed_variables(agent, settings.pass_environment, environment, never=key)
    except ConfigError as error:
        raise JobServerError(str(error)) from None

    def read(name: str) -> str:
        return read_variable(name, environment)

    login = agent.model_login(read, settings.model)
    told = None if _is_listed(agent, settings.model, login) else settings.model
    wanted = Wanted(settings.model, settings.effort, agent.mode)
    return AgentLaunch(agent, passed, told, settings.agent_home, _door(agent, settings, login, read), wanted=wanted)


def _is_listed(agent: Agent, model: str | None, login: ModelLogin | None) -> bool:
    """Whether the agent's own list has to have the model; none knows what there is at an address that is set."""
    is_at_its_makers = login is not None and not login.address
    return bool(model and agent.listed_models and is_at_its_makers and agent.listed_models.fullmatch(model))


def _door(agent: Agent, settings: JobServerSettings, login: ModelLogin | None, read: Read) -> ModelDoor | None:
    """Returns the agent's way to its model; None where it has the network, or a login that the relay does not carry."""
    if not relays_models(settings):
        return None
    if settings.model_api is not None:
        return door_of_settings(settings)
    if login is None:
        return None
    login.check_address()
    model = None if settings.model == _ITS_OWN else settings.model
    return ModelDoor(login, read, model, frozenset(agent.passed))
