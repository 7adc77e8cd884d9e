"""The pages of the local pull requests: a list, and one page each with its Merge and Close buttons."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import jinja2
from aiohttp import web

from bot.jobserver.errors import JobServerError, MergeError
from bot.jobserver.guards import is_own_origin
from bot.jobserver.pull_requests.diff import parse_diff
from bot.jobserver.pull_requests.local import Contents, LocalPullRequests, UnknownPullRequestError

_HERE = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it browsers send a form's Origin as "null".
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Block:
    """A paragraph of a description: a quoted instruction or what the editor said."""

    text: str
    is_quote: bool


def blocks(description: str) -> list[Block]:
    """Split a description at its empty lines; lines that begin with ">" are a quotation."""
    found = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+(?!>\s*$)", description.strip()):
        lines = paragraph.split("\n")
        is_quote = all(line.startswith(">") for line in lines)
        text = "\n".join(line[1:].removeprefix(" ") for line in lines) if is_quote else paragraph
        found.append(Block(text, is_quote))
    return found


def page(template: str, *, status: int = 200, **values: object) -> web.Response:
    text = _templates.get_template(template).render(values)
    return web.Response(
        body=text.encode(errors="replace"), status=status, content_type="text/html", charset="utf-8", headers=_HEADERS
    )


def refuse(_: web.Request, status: int, words: str) -> web.Response:
    return page("refusal.html", status=status, words=words, code=status)


class Pages:
    """The handlers. `repository` is what the pages call it."""

    def __init__(self, pull_requests: LocalPullRequests, *, public_url: str, repository: str) -> None:
        self._pull_requests = pull_requests
        self._public_url = public_url
        self._repository = repository

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/", self.home)
        app.router.add_get("/pulls", self.list)
        app.router.add_get(r"/pulls/{number:[1-9]\d{0,8}}", self.show)
        app.router.add_post(r"/pulls/{number:[1-9]\d{0,8}}/merge", self.merge)
        app.router.add_post(r"/pulls/{number:[1-9]\d{0,8}}/close", self.close)
        app.router.add_get(r"/static/{name:[a-z]+\.(?:css|svg)}", self.static)

    async def home(self, _: web.Request) -> web.Response:
        raise web.HTTPSeeOther("/pulls")

    async def list(self, _: web.Request) -> web.Response:
        records = await self._pull_requests.all()
        return page("list.html", records=records, repository=self._repository)

    async def show(self, request: web.Request) -> web.Response:
        return await self._page(request)

    async def static(self, request: web.Request) -> web.StreamResponse:
        path = _HERE / "static" / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path, headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"})

    async def merge(self, request: web.Request) -> web.Response:
        return await self._press(request, self._pull_requests.merge)

    async def close(self, request: web.Request) -> web.Response:
        return await self._press(request, self._pull_requests.close)

    async def _press(self, request: web.Request, action: Callable[[int], Awaitable[None]]) -> web.Response:
        if not is_own_origin(request.headers.get("Origin"), request.host, self._public_url):
            return refuse(request, 403, "This button works only on the pull request's own page.")
        number = int(request.match_info["number"])
        try:
            await action(number)
        except UnknownPullRequestError as error:
            raise web.HTTPNotFound from error
        except MergeError as error:
            return await self._page(request, status=409, problem=str(error))
        except JobServerError:
            words = "The repository could not be reached. Please try again."
            return await self._page(request, status=503, problem=words)
        raise web.HTTPSeeOther(f"/pulls/{number}")

    async def _page(self, request: web.Request, *, status: int = 200, problem: str = "") -> web.Response:
        try:
            contents = await self._pull_requests.contents(int(request.match_info["number"]))
        except UnknownPullRequestError as error:
            raise web.HTTPNotFound from error
        # A large diff takes a second to compare and write: the API goes on meanwhile.
        return await asyncio.to_thread(self._written, contents, status, problem)

    def _written(self, contents: Contents, status: int, problem: str) -> web.Response:
        return page(
            "pull_request.html",
            status=status,
            record=contents.record,
            commits=contents.commits,
            diff=parse_diff(contents.diff),
            blocks=blocks(contents.record.description),
            repository=self._repository,
            problem=problem,
        )
