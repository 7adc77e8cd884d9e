"""The handlers of the pages: a list of pull requests, and one page each with its Merge and Close buttons."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from bot.jobserver.errors import JobServerError, MergeError, PullRequestNotFoundError
from bot.jobserver.middleware import is_same_origin
from bot.jobserver.pages.description import paragraphs
from bot.jobserver.pages.diff import parse_diff
from bot.jobserver.pages.rendering import error_page, render_page
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests, PullRequestContents

_STATIC = Path(__file__).parent / "static"


class PullRequestPages:
    """The handlers. `repository` is the name that the pages show."""

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
        newest = await self._pull_requests.newest()
        return render_page("list.html", pull_requests=newest, repository=self._repository)

    async def show(self, request: web.Request) -> web.Response:
        return await self._page(request)

    async def static(self, request: web.Request) -> web.StreamResponse:
        path = _STATIC / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path, headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"})

    async def merge(self, request: web.Request) -> web.Response:
        return await self._press(request, self._pull_requests.merge)

    async def close(self, request: web.Request) -> web.Response:
        return await self._press(request, self._pull_requests.close)

    async def _press(self, request: web.Request, action: Callable[[int], Awaitable[None]]) -> web.Response:
        if not is_same_origin(request.headers.get("Origin"), request.host, self._public_url):
            return error_page(request, 403, "This button works only on the pull request's own page.")
        number = int(request.match_info["number"])
        try:
            await action(number)
        except PullRequestNotFoundError as error:
            raise web.HTTPNotFound from error
        except MergeError as error:
            return await self._page(request, status=409, problem=str(error))
        except JobServerError:
            message = "The repository could not be reached. Please try again."
            return await self._page(request, status=503, problem=message)
        raise web.HTTPSeeOther(f"/pulls/{number}")

    async def _page(self, request: web.Request, *, status: int = 200, problem: str = "") -> web.Response:
        try:
            contents = await self._pull_requests.contents(int(request.match_info["number"]))
        except PullRequestNotFoundError as error:
            raise web.HTTPNotFound from error
        # A large diff takes a second to compare and render: the API goes on meanwhile.
        return await asyncio.to_thread(self._render, contents, status, problem)

    def _render(self, contents: PullRequestContents, status: int, problem: str) -> web.Response:
        return render_page(
            "pull_request.html",
            status=status,
            pull_request=contents.row,
            commits=contents.commits,
            diff=parse_diff(contents.diff),
            description=paragraphs(contents.row.description),
            repository=self._repository,
            problem=problem,
        )
