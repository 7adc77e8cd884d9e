"""The files in .deploy agree with the settings and the versions that they name. `.ci/deploy` checks their form."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from bot.app.settings.config import Config
from bot.jobserver.agents.named import CLAUDE
from bot.jobserver.middleware import allowed_hosts
from bot.jobserver.settings.server import JobServerSettings
from bot.runtime.settings import variable_name

DEPLOY = Path(__file__).parents[3] / ".deploy"
COMPOSE = sorted(DEPLOY.glob("compose*.yml"))
FILES = [*COMPOSE, *DEPLOY.glob("systemd/*.service"), DEPLOY / "Dockerfile"]
OF_PROGRAMS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "PATH"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_in_deployment_files_is_a_setting(file: Path) -> None:
    settings = {variable_name(kind, field) for kind in (Config, JobServerSettings) for field in kind.model_fields}
    known = OF_PROGRAMS | settings | {f"{name}_FILE" for name in settings}
    if file.suffix == ".yml":
        composed = yaml.safe_load(file.read_text(encoding="utf-8"))["services"].values()
        named = {name for service in composed for name in service.get("environment", {})}
    else:
        lines = re.findall(r"^(?:ENV |Environment=)(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        named = {name for line in lines for name in re.findall(r"(?:^| )([A-Z_]+)=", line)}
    assert named
    assert named <= known


def test_the_image_contains_the_default_agent_of_the_job_server() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    arguments = dict(re.findall(r"^ARG (AGENT_\w+)=(\S+)$", dockerfile, re.MULTILINE))
    assert CLAUDE.install.endswith(f" {arguments['AGENT_PACKAGE']} --before={arguments['AGENT_PACKAGES_BEFORE']}")


def test_every_process_of_the_bot_can_reach_the_job_server_of_compose() -> None:
    """Each process reads all settings before it starts, and the job server refuses host names that it does not know."""
    base, added = (
        yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["services"]
        for name in ("compose.yml", "compose.jobserver.yml")
    )
    bots = {name for name, service in base.items() if service["image"] == "pagehand"} - {"migrate"}
    assert bots == {"worker", "web"}
    for name in bots:
        assert added[name]["environment"] == added["worker"]["environment"]
    served = {name: value for name, value in added["jobserver"]["environment"].items() if "KEY" not in name}
    served |= {"PAGEHAND_JOBSERVER_PUBLIC_URL": "http://127.0.0.1:8765", "PAGEHAND_JOBSERVER_API_KEY": "x" * 16}
    settings = JobServerSettings.from_environment(served | {"PAGEHAND_JOBSERVER_REPOSITORY": "https://x.example/r"})
    url = urlsplit(added["worker"]["environment"]["JOB_API_URL"])
    assert (url.hostname, url.port) == ("jobserver", settings.port), "the name of the service"
    assert url.hostname in allowed_hosts(settings.host, settings.public_url or "", settings.host_names)


def test_every_path_that_a_container_writes_is_in_a_volume() -> None:
    for file in COMPOSE:
        composed = yaml.safe_load(file.read_text(encoding="utf-8"))
        named = {
            volume.partition(":")[0]
            for service in composed["services"].values()
            for volume in service.get("volumes", [])
        }
        declared = yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))["volumes"]
        assert named <= set(declared) | set(composed.get("volumes", {}))
