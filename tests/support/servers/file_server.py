"""A server in place of Slack's files: gives set answers, and records the requests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FileServer:
    """`answers` are by path; `asked` has each request's path and Authorization header."""

    address: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def gives(self, path: str, body: bytes = b"", *, status: int = 200, **headers: str) -> str:
        """Sets the content of a path, and returns its address. Underscores in header names stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}

        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(body=body, status=status, headers=named)

        self.answers[path] = answer
        return f"{self.address}{path}"

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        answer = self.answers.get(request.path)
        return web.Response(status=404) if answer is None else await answer(request)


@asynccontextmanager
async def file_server() -> AsyncIterator[FileServer]:
    server, app = FileServer(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
