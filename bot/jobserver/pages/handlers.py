"""The pages of each project: a list of pull requests, and the changes, rendered pages and buttons of each."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.typedefs import Handler
from markupsafe import Markup

from bot.codehosts.pull_request import CheckOutcome, Verdict
from bot.jobserver.documents import PICTURE_FORMATS, PageSource
from bot.jobserver.errors import DecisionError, JobServerError, PullRequestNotFoundError
from bot.jobserver.pages.diff import PageOfFiles, file_diffs, omissions, page_of_files, visible
from bot.jobserver.pages.rendered import FILES_ON_A_PAGE, MarkdownRenderer, rendered_files
from bot.jobserver.pages.reviewers import Gate, refusal
from bot.jobserver.pull_requests.local.local_pull_requests import (
    Judgement,
    LocalPullRequests,
    PullRequestContents,
    pages_of,
)
from bot.jobserver.text import one_line
from bot.runtime.pictures import picture_type
from bot.runtime.text import without_misleading

if TYPE_CHECKING:
    import jinja2

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it browsers send a form's Origin as "null".
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONGEST_NAME = 100
_PICTURE_HEADERS = _HEADERS | {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TIME_LIMIT_S = 3.0
_NUMBER = r"/{number:[1-9]\d{0,8}}"
_PAGE = re.compile(r"[1-9]\d{0,5}")
_OUTCOMES: Mapping[str, Mapping[str, Verdict | CheckOutcome]] = {
    "review": {each.value: each for each in (Verdict.APPROVED, Verdict.CHANGES_REQUESTED)},
    "check": {each.value: each for each in CheckOutcome if each is not CheckOutcome.UNKNOWN},
}
_NO_OUTCOME = f"A check needs a `name`, and an `outcome`: {', '.join(_OUTCOMES['check'])}."
_UNREACHABLE = "The repository could not be reached. Please try again."


@cache
def _templates() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - a worker has no pages

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(template: str, *, status: int = 200, **values: object) -> web.Response:
    text = without_misleading(_templates().get_template(template).render(values))
    return web.Response(
        body=text.encode(errors="replace"), status=status, content_type="text/html", charset="utf-8", headers=_HEADERS
    )


def error_page(request: web.Request, status: int, message: str) -> web.Response:
    project = request.match_info.get("project")
    root = pages_of(project) if project else "/pulls"
    return render_page("error.html", status=status, message=message, root="" if root == request.path else root)


async def form_fields(request: web.Request) -> Mapping[str, str]:
    """Returns the fields of a form; each is empty if it is missing or the body is not a valid form."""
    fields = defaultdict[str, str](str)
    if request.content_type == "application/x-www-form-urlencoded":
        text = (await request.read()).decode(errors="replace")
        with suppress(ValueError):  # too many
            fields.update(parse_qsl(text, errors="replace", max_num_fields=20))
    return fields


async def shown_description(description: str, address: str, renderer: MarkdownRenderer) -> Markup | str:
    """Returns the description of the pull request at an address, Markdown by people and agents: safe HTML, or text if
    that takes long.
    """
    page = PageSource(visible(description), "", f"{address}/after/")
    html = (await renderer.render([page])).get(page)
    # Markup: `markdown` made it, and lets nothing of the author's through unescaped.
    return page.text if html is None else Markup(html)  # noqa: S704


class PullRequestPages:
    """The handlers of a project's pages, which are at `root`. `repository` is the name to show."""

    def __init__(self, pull_requests: LocalPullRequests, gate: Gate, *, root: str, repository: str) -> None:
        self._pull_requests = pull_requests
        self.gate = gate
        self._root = root
        self._repository = repository
        self._renderer = MarkdownRenderer()
        self._descriptions = MarkdownRenderer(time_limit=TIME_LIMIT_S)

    async def list(self, request: web.Request) -> web.Response:
        self.gate.check_may_read(request)
        return self._render("list.html", request, rows=await self._pull_requests.list())

    async def rendered(self, request: web.Request) -> web.Response:
        contents = await self._contents(request)
        page = page_of_files(contents.change, _page_number(request), FILES_ON_A_PAGE)
        files = await rendered_files(page, contents.row.page, self._pull_requests.reader, self._renderer)
        return await asyncio.to_thread(
            lambda: self._render("rendered.html", request, contents=contents, page=page, files=files)
        )

    async def picture(self, request: web.Request) -> web.Response:
        self.gate.check_may_read(request)
        side: Literal["before", "after"] = "before" if request.match_info["side"] == "before" else "after"
        path = request.match_info["path"]
        if not path.lower().endswith(PICTURE_FORMATS) or "\0" in path:
            raise web.HTTPNotFound
        contents = await self._pull_requests.file(_number(request), side, path)
        # By its first bytes; these formats cannot contain scripts.
        if (kind := picture_type(contents or b"")) is None:
            raise web.HTTPNotFound
        return web.Response(body=contents, content_type=kind, headers=_PICTURE_HEADERS)

    async def merge(self, request: web.Request) -> web.Response:
        form = await form_fields(request)
        return await self._press(
            request, lambda number, name: self._pull_requests.merge(number, head=form["head"], by=name)
        )

    async def judge(self, request: web.Request) -> web.Response:
        """Records a review, or how a check stands: a script's name and words for it."""
        form, kind = await form_fields(request), request.match_info["kind"]
        outcome, words = _OUTCOMES[kind].get(form["outcome"]), visible(form["words"].replace("\r\n", "\n"))

        async def record(number: int, reviewer: str) -> None:
            author = reviewer if kind == "review" else one_line(form["name"], _LONGEST_NAME)
            if outcome is None or not author:
                raise web.HTTPBadRequest(reason=_NO_OUTCOME)
            await self._pull_requests.judge(number, Judgement(form["head"], author, outcome, words))

        return await self._press(request, record)

    async def close(self, request: web.Request) -> web.Response:
        return await self._press(request, lambda number, name: self._pull_requests.close(number, by=name))

    async def _press(self, request: web.Request, action: Callable[[int, str], Awaitable[None]]) -> web.Response:
        name = self.gate.check_may_decide(request)
        try:
            await action(_number(request), name)
        except PullRequestNotFoundError:
            raise
        except DecisionError as error:
            return await self.show(request, status=409, problem=str(error))
        except JobServerError:
            return await self.show(request, status=503, problem=_UNREACHABLE)
        raise web.HTTPSeeOther(f"{self._root}/{_number(request)}")

    async def _contents(self, request: web.Request) -> PullRequestContents:
        self.gate.check_may_read(request)
        return await self._pull_requests.contents(_number(request))

    async def show(self, request: web.Request, *, status: int = 200, problem: str = "") -> web.Response:
        contents = await self._contents(request)
        page = page_of_files(contents.change, _page_number(request))
        patches = await self._pull_requests.reader.patches(contents.change, page.files)
        description = await shown_description(contents.row.description, contents.row.page, self._descriptions)
        values = {"contents": contents, "page": page, "description": description, "problem": problem}
        values["words"] = (await form_fields(request))["words"]  # what was not recorded is not lost
        # In a thread, since thousands of lines take a second to compare and render.
        return await asyncio.to_thread(
            lambda: self._render("changes.html", request, status=status, **values, **_shown_changes(page, patches))
        )

    def _render(self, template: str, request: web.Request, *, status: int = 200, **values: Any) -> web.Response:
        viewer, has_reviewers = self.gate.viewer(request), self.gate.somebody_may_decide
        values |= {"root": self._root, "repository": self._repository}
        values |= {"viewer": viewer, "has_reviewers": has_reviewers}
        return render_page(template, status=status, **values)


ProjectHandler = Callable[[PullRequestPages, web.Request], Awaitable[web.Response]]
_HANDLERS: Sequence[tuple[Callable[[str, Handler], web.RouteDef], str, ProjectHandler]] = (
    (web.get, "", PullRequestPages.list),
    (web.get, _NUMBER, PullRequestPages.show),
    (web.get, f"{_NUMBER}/rendered", PullRequestPages.rendered),
    (web.get, rf"{_NUMBER}/{{side:before|after}}/{{path:.+}}", PullRequestPages.picture),
    (web.post, f"{_NUMBER}/merge", PullRequestPages.merge),
    (web.post, f"{_NUMBER}/close", PullRequestPages.close),
    (web.post, f"{_NUMBER}/{{kind:review|check}}", PullRequestPages.judge),
)


@dataclass(frozen=True)
class PageRoutes:
    """The routes of all pages. `projects` returns the pages by project, `project_of` a pull request's project."""

    projects: Callable[[], Mapping[str, PullRequestPages]]
    project_of: Callable[[int], Awaitable[str | None]]

    def all(self) -> Iterator[web.RouteDef]:
        yield web.get("/", _home)
        yield web.get(r"/static/{name:[a-z]+\.(?:css|svg)}", _static)
        for method, path, handler in _HANDLERS:
            yield method(f"/{{project}}/pulls{path}", partial(self._of_project, handler))
            yield method(f"/pulls{path}", partial(self._without_project, handler))

    async def _of_project(self, handler: ProjectHandler, request: web.Request) -> web.Response:
        pages = self.projects().get(request.match_info["project"])
        if pages is None:
            raise web.HTTPNotFound
        return await handler(pages, request)

    async def _without_project(self, handler: ProjectHandler, request: web.Request) -> web.Response:
        """Redirects from an address of 1.0.0; a script that sends a form there may not follow, and is answered."""
        projects = self.projects()
        project = await self._owner(request) if len(projects) > 1 else next(iter(projects), None)
        if project is None or project not in projects:
            raise web.HTTPNotFound
        if request.method == "POST":
            return await handler(projects[project], request)
        raise web.HTTPFound(f"{pages_of(project)}{str(request.rel_url).removeprefix('/pulls')}")

    async def _owner(self, request: web.Request) -> str | None:
        """Returns the project of a pull request; who may not read that learns no more than of one that is not there."""
        if (number := request.match_info.get("number")) is None:
            raise web.HTTPNotFound(reason="This server has several projects: the pages of each are at /PROJECT/pulls.")
        owner, projects = await self.project_of(int(number)), self.projects()
        closed = [name for name, pages in projects.items() if not pages.gate.may_read(request)]
        if closed and (owner in closed or owner not in projects):
            has_reviewers = any(projects[name].gate.somebody_may_decide for name in closed)
            raise refusal("Pagehand reviewers", has_reviewers=has_reviewers)
        return owner


async def _home(_: web.Request) -> web.Response:
    raise web.HTTPSeeOther("/pulls")


async def _static(request: web.Request) -> web.StreamResponse:
    path = Path(__file__).parent / "static" / request.match_info["name"]
    if not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path, headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"})


def _shown_changes(page: PageOfFiles, patches: tuple[str, ...]) -> dict[str, Any]:
    diffs = file_diffs(page.files, patches)
    return {"diffs": diffs, "omissions": omissions(page, diffs)}


def _number(request: web.Request) -> int:
    return int(request.match_info["number"])


def _page_number(request: web.Request) -> int:
    asked = request.query.get("page", "")
    return int(asked) if _PAGE.fullmatch(asked) else 1
