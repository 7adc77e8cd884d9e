"""Checks a project's job API: address, key, project, and abilities beyond the specification."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bot.app.settings.projects import ProjectSettings
from bot.domain.findings import Finding, FindingStatus
from bot.domain.projects import WISHES, JobApiAbilities
from bot.errors import JobApiError, JobApiNotAllowed, JobApiUncertain, JobApiUnreachable, JobGone
from bot.jobapi.client import HttpJobApi
from bot.jobapi.probe import NO_JOB, FoundAddress, JobApiProbe
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.text import printable_line

_WHY = "No job can be started, and those at work cannot be followed."
_ADDRESS = "Correct JOB_API_URL (it is {address}, to which /v2/agent/… is added), or JOB_API_GET_PATH."
_LONGEST_WORDS = 200
_GIVES = {
    "cancel": "*Stop* ends what the agent does, instead of asking the agent to stop",
    "files": "files go along with requests, instead of links",
    "instruction": "the job API knows a person's own words from the context that comes with them",
    "pull_request": "a pull request's checks, reviews and end come into the thread without a token here",
    "pictures": "pictures that the agent adds to pages come into the thread",
    "idempotent": "what may have arrived is sent again without asking",
    "requester": "pull requests say who asked",
    "modes": "people can ask to see a plan first, to get only an answer, and for a model",
}


async def check_job_api(project: ProjectSettings) -> Sequence[Finding]:
    """Checks a project's job API by reading a job that does not exist. While its key is being replaced, one of the two
    has to work.
    """
    name = f"job_api.{project.project.name}"
    findings: list[Finding] = []
    for key in project.job_api.api_key.values:
        job_api = project.job_api.model_copy(update={"api_key": RotatingSecret(key)})
        findings = [await _answer(name, replace(project, job_api=job_api))]
        if findings[0].status is not FindingStatus.ERROR:
            async with JobApiProbe(job_api, project.id) as probe:
                return [*findings, *ability_findings(name, project.project.abilities, await probe.abilities())]
        if findings[0].passing:
            break
    return findings


async def _answer(name: str, project: ProjectSettings) -> Finding:
    api = HttpJobApi({project.id: (project.id, project.job_api)})
    try:
        await api.get(project.id, NO_JOB)
    except JobGone as error:
        return await _gone(name, project, error)
    except JobApiError as error:
        return _fault(name, project, error)
    finally:
        await api.aclose()
    return Finding.ok(name, f"{project.job_api.base_url} answers.")


async def _gone(name: str, project: ProjectSettings, error: JobGone) -> Finding:
    """Interprets an answer that the job is unknown. The project may be unknown, too, which the job API can only say in
    its own message; or it is no job API at all.
    """
    words = printable_line(error.words, _LONGEST_WORDS)
    if "project" in words.casefold() and "job" not in words.casefold():
        found = f"The job API does not know the project {project.id!r}: {words}"
        fix = "Set JOB_API_PROJECT (in a projects' file: project) to the id that whoever runs the job API gives you."
        return Finding.error(name, f"{found.rstrip('.')}.", why=_WHY, fix=fix)
    async with JobApiProbe(project.job_api, project.id) as probe:
        found_there = await probe.address()
    return _at(name, project.job_api.base_url, found_there)


def _at(name: str, address: str, found: FoundAddress) -> Finding:
    fix = _ADDRESS.format(address=address)
    if found.has_jobs is False and (found.checks_keys is False or address.endswith("/v2")):
        words = f"{address} answers, but as to an address that is not there (404): there is no job API."
        return Finding.error(name, words, why=_WHY, fix=fix)
    match found.has_jobs, found.checks_keys:
        case True, True:
            return Finding.ok(name, f"{address} answers, and takes the key.")
        case True, False:
            why = "Whoever reaches it can start jobs, and whether JOB_API_KEY is right cannot be seen."
            return Finding.warning(name, f"{address} answers, and takes any key.", why=why, fix="Ask whoever runs it.")
        case False, True:
            words = f"{address} answers, and takes the key. Whether jobs are there shows with the first one (404)."
            return Finding.not_checked(name, words, fix=fix)
        case _:
            return Finding.not_checked(name, f"{address} answers, but not to all questions: run this again.")


def _fault(name: str, project: ProjectSettings, error: JobApiError) -> Finding:
    words = printable_line(error.words, _LONGEST_WORDS)
    found = f"{error}{f' It says: {words}' if words else ''}"
    address = project.job_api.base_url
    fix = f"Check JOB_API_URL ({address}) and JOB_API_GET_PATH, that the job API runs, its log, and the proxy between."
    if isinstance(error, JobApiNotAllowed):
        fix = "Ask whoever runs the job API for a key that is good for this project and this machine's address."
    passing = isinstance(error, JobApiUnreachable | JobApiUncertain)
    return Finding.error(name, found, why=_WHY, fix=fix, passing=passing)


def ability_findings(name: str, told: JobApiAbilities, found: Mapping[str, bool | None]) -> Iterator[Finding]:
    """Compares a job API's abilities according to the settings with those found."""
    for ability, can in found.items():
        yield _ability(f"{name}.{ability}", f"JOB_API_{ability.upper()}", getattr(told, ability), can=can)


def _ability(check: str, setting: str, told: bool, *, can: bool | None) -> Finding:  # noqa: FBT001 - as in the settings
    gives = _GIVES[setting.removeprefix("JOB_API_").lower()]
    if can is None:
        return Finding.not_checked(check, f"Whether {setting} fits cannot be found out without starting a job.")
    if can is told:
        return Finding.ok(check, f"{setting}={str(told).lower()} agrees with the job API.")
    if can and check.rpartition(".")[2] in WISHES:
        return Finding.ok(check, f"{setting}=false: with it, {gives}.")
    if can:
        why, fix = f"With it, {gives}.", f"Set {setting}=true (in a projects' file: {setting[8:].lower()} = true)."
        return Finding.warning(check, f"The job API can do more than {setting}=false uses.", why=why, fix=fix)
    lacks, fix = f"{setting}=true, but the job API does not have that.", f"Leave {setting} out, or set it to false."
    if check.endswith(".modes"):
        why = (
            "Who asks for a plan first, or only for an answer, gets pages changed at once, if it ignores what it lacks."
        )
        return Finding.error(check, lacks, why=why, fix=fix)
    return Finding.warning(
        check, lacks, why=f"It is for a job API with which {gives}: here such requests fail.", fix=fix
    )
