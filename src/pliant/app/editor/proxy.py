"""What a browser talks to: a small HTTP server that lets only its own pages through to viser.

viser answers every connection, so it listens where no browser reaches (a socket file that only this
user may open, see `viser_server`), and this server, on the loopback interface, answers

    GET /?token=...           the printed address: sets a cookie and leads to /PLACE/
    GET /PLACE/               viser's page, with a content security policy
    GET /PLACE/files/NAME     a file of the served folder
    GET /PLACE (websocket)    a tunnel to viser

and nothing else, after `requests.Gate` has checked Host, Origin, token or cookie; PLACE is random.
Visitors that say nothing, or nothing yet, are counted apart from those who have shown the secret,
and make room for new ones: they cannot keep anybody out. Nothing is held in memory for a visitor
who does not take what is sent.
"""

import asyncio
import gzip
import io
import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from pliant.app.editor.folder import open_inside
from pliant.app.editor.requests import (
    MAX_HEAD,
    Gate,
    Refused,
    Request,
    file_name,
    names_of,
    read_head,
)
from pliant.core.errors import BadInput

HEAD_SECONDS = 10.0
"""A visitor that has not sent a request by then is let go."""

STALL_SECONDS = 20.0
"""A visitor that has not taken the next part of an answer by then is let go."""

MAX_WAITING = 128
"""Visitors whose request has not arrived; of more, the one that waits longest is let go."""

MAX_CONNECTIONS = 64
"""Visitors with the secret that are served at once."""

CHUNK = 256 * 1024

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "worker-src 'self' blob:; connect-src 'self' {sockets} data: blob:; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'; object-src 'none'"
)
"""The page is one file with scripts inside; it may talk to this server only, whatever its address
says (viser's page takes another server's address from its query)."""


@dataclass
class Answer:
    """What is sent back: `size` bytes of a stream, which is closed afterwards."""

    status: HTTPStatus
    headers: dict[str, str]
    body: BinaryIO = field(default_factory=io.BytesIO)
    size: int = 0


class Proxy:
    """Serves in a thread of its own from `start` to `stop`.

    page: the HTML; connect: opens a connection to viser; secret: the header that viser demands.
    """

    def __init__(
        self,
        *,
        page: bytes,
        connect: Connect,
        folder: Path,
        secret: str,
        host: str = "127.0.0.1",
        port: int = 0,
    ):
        self.folder = folder
        self._page = gzip.compress(page, 6)
        self._connect = connect
        self._secret = secret
        self._host, self._wanted = host, port
        self._token, self._session = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._served = 0
        self._tasks: set[asyncio.Task] = set()
        self._waiting: dict[asyncio.Task, None] = {}

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self._address(self._token)

    def address_for_one_visit(self) -> str:
        """The same with a token that is good once."""
        token = secrets.token_urlsafe(24)
        self.gate.once.add(token)
        return self._address(token)

    def _address(self, token: str) -> str:
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::", "localhost") else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?token={token}"

    def start(self) -> None:
        """Listen; BadInput if the port is taken."""
        self._loop = asyncio.new_event_loop()
        ready: list[OSError | None] = []
        said = threading.Event()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            try:
                self._server = self._loop.run_until_complete(
                    asyncio.start_server(
                        self._serve, self._host, self._wanted, limit=MAX_HEAD, backlog=512
                    )
                )
                ready.append(None)
            except OSError as error:
                ready.append(error)
                said.set()
                return
            said.set()
            self._loop.run_forever()
            self._loop.run_until_complete(self._wind_down())
            self._loop.close()

        self._thread = threading.Thread(target=run, name="pliant-proxy", daemon=True)
        self._thread.start()
        said.wait()
        if (error := ready[0]) is not None:
            self._loop.close()
            raise BadInput(
                f"Port {self._wanted} on {self._host} cannot be used ({error.strerror or error}): "
                "choose another --port."
            )
        assert self._server is not None
        self.port: int = self._server.sockets[0].getsockname()[1]
        place = secrets.token_hex(12)
        self.gate = Gate(names_of(self._host, self.port), self._token, self._session, place)
        # a policy cannot name IPv6 addresses; for them there is 'self'
        sockets = " ".join(f"ws://{h}" for h in sorted(self.gate.hosts) if "[" not in h)
        self._policy = _POLICY.format(sockets=sockets)

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5.0)

    async def _wind_down(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writer.transport.set_write_buffer_limits(high=CHUNK)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the visitor left or stalled, made room for others, or we are stopping
        finally:
            self._tasks.discard(task)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()  # what a visitor does not take is dropped with him
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await self._head(reader)
            if head is None:
                return
            request = read_head(head)
            self.gate.check(request)
            if self._served >= MAX_CONNECTIONS:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.")
            self._served += 1
            try:
                if request.is_websocket:
                    await self._tunnel(request, reader, writer)
                else:
                    answer = self._page_or_file(request)
                    await _send(writer, answer, only_head=request.method == "HEAD")
            finally:
                self._served -= 1
        except Refused as refusal:
            body = f"{refusal.reason}\n".encode()
            headers = {"Content-Type": "text/plain"}
            await _send(writer, Answer(refusal.status, headers, io.BytesIO(body), len(body)))

    async def _head(self, reader: asyncio.StreamReader) -> bytes | None:
        """The head of a request; None if it does not come."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._waiting) >= MAX_WAITING:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.cancel()
        self._waiting[task] = None
        try:
            return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        except asyncio.LimitOverrunError:
            large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise Refused(large, "The request is too large.") from None
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(task, None)

    def _page_or_file(self, request: Request) -> Answer:
        """The answer to a plain request."""
        gate = self.gate
        if gate.has_token(request):
            if request.method == "GET":
                gate.use_token(request)
            cookie = f"{gate.cookie_name}={self._session}; Path=/{gate.place}; HttpOnly"
            headers = {"Location": f"/{gate.place}/", "Set-Cookie": f"{cookie}; SameSite=Strict"}
            return Answer(HTTPStatus.SEE_OTHER, headers)
        path = gate.below(request) or ""
        if path == "/":
            headers = {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Encoding": "gzip",
                "Content-Security-Policy": self._policy,
            }
            return Answer(HTTPStatus.OK, headers, io.BytesIO(self._page), len(self._page))
        if path.startswith("/files/"):
            name = file_name(path)
            try:
                body, size = open_inside(self.folder, name)
            except BadInput:
                raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.") from None
            # as a download of no type: a file must never run as a page of this origin
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Security-Policy": "sandbox",
            }
            return Answer(HTTPStatus.OK, headers, body, size)
        raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.")

    async def _tunnel(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Hand the connection over to viser: a request of our own making, then bytes both ways."""
        if self.gate.below(request) != "/":
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.")
        try:
            inner_reader, inner_writer = await self._connect()
        except OSError:
            raise Refused(HTTPStatus.BAD_GATEWAY, "The editor is stopping.") from None
        keep = ("sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")
        headers = {
            "Host": "pliant", "Upgrade": "websocket", "Connection": "Upgrade",
            "X-Pliant-Secret": self._secret,
            **{name: request.headers[name] for name in keep if name in request.headers},
        }  # fmt: skip
        lines = ["GET / HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        inner_writer.write("\r\n".join(lines).encode())
        ways = [
            asyncio.ensure_future(_copy(reader, inner_writer)),
            asyncio.ensure_future(_copy(inner_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            inner_writer.close()


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, only_head: bool = False) -> None:
    """Head and body, a part at a time, each when the one before has been taken."""
    headers = {
        **answer.headers,
        "Content-Length": str(answer.size),
        "Connection": "close",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with answer.body as body:
        writer.write("\r\n".join([*lines, "", ""]).encode())
        left = 0 if only_head else answer.size
        while left > 0 and (data := await asyncio.to_thread(body.read, min(CHUNK, left))):
            left -= len(data)
            writer.write(data)
            await asyncio.wait_for(writer.drain(), STALL_SECONDS)
        # the last part too must leave before the connection is closed
        writer.transport.set_write_buffer_limits(high=0)
        await asyncio.wait_for(writer.drain(), STALL_SECONDS)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
