"""A company's proxy on loopback: it connects by CONNECT to the place that a test gives for each target."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class CompanyProxy:
    """`leads_to` are targets, as `name:port`, and their local ports; `answer` is sent instead, if set."""

    leads_to: dict[str, int] = field(default_factory=dict)
    answer: bytes | None = None
    heads: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def asked(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if self.answer is not None:
                writer.write(self.answer)
            else:
                await self._connect(reader, writer)
        writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self.leads_to.get(self.asked[-1])
        if target is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        outer_reader, outer_writer = await asyncio.open_connection("127.0.0.1", target)
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 company\r\n\r\n")
        await asyncio.gather(_copy(reader, outer_writer), _copy(outer_reader, writer))
        outer_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


@asynccontextmanager
async def company_proxy(tls: ssl.SSLContext | None = None, **leads_to: int) -> AsyncIterator[CompanyProxy]:
    """With `tls`, clients use TLS to the proxy itself; `url` then names it by localhost."""
    proxy = CompanyProxy(dict(leads_to))
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        proxy.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        yield proxy
