"""What a browser talks to: a small HTTP server that lets only its own pages through to viser.

viser answers every connection, so it listens where no browser reaches (a socket file that only this
user may open, see `viser_server`), and this server, on the loopback interface, answers

    GET /?token=...     the printed address: sets a cookie and leads to /
    GET /               viser's page, with a content security policy
    GET /files/NAME     a file of the served folder
    GET / (websocket)   a tunnel to viser

and nothing else, after `requests.Gate` has checked Host, Origin, token or cookie.
"""

import asyncio
import gzip
import secrets
import threading
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

from pliant.app.editor.folder import read_inside
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

MAX_CONNECTIONS = 64
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
        self._open = 0
        self._tasks: set[asyncio.Task] = set()

    @property
    def address(self) -> str:
        """What to open in a browser."""
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::", "localhost") else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?token={self._token}"

    def start(self) -> None:
        """Listen; BadInput if the port is taken."""
        self._loop = asyncio.new_event_loop()
        ready: list[OSError | None] = []
        said = threading.Event()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            try:
                self._server = self._loop.run_until_complete(
                    asyncio.start_server(self._serve, self._host, self._wanted, limit=MAX_HEAD)
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
        self.gate = Gate(
            names_of(self._host, self.port), self._token, self._session, f"pliant_{self.port}"
        )
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
        self._open += 1
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the visitor left, or we are stopping
        finally:
            self._open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._open > MAX_CONNECTIONS:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.")
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            except asyncio.LimitOverrunError:
                large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                raise Refused(large, "The request is too large.") from None
            except TimeoutError:
                return
            request = read_head(head)
            self.gate.check(request)
            if request.is_websocket:
                await self._tunnel(request, reader, writer)
            else:
                # in another thread: a large file must not hold up the tunnels
                status, headers, body = await asyncio.to_thread(self._page_or_file, request)
                await self._send(writer, status, headers, body, only_head=request.method == "HEAD")
        except Refused as refusal:
            body = f"{refusal.reason}\n".encode()
            await self._send(writer, refusal.status, {"Content-Type": "text/plain"}, body)

    def _page_or_file(self, request: Request) -> tuple[HTTPStatus, dict[str, str], bytes]:
        """Status, headers and body of an answer to a plain request."""
        if request.path == "/":
            if self.gate.has_token(request):
                cookie = f"{self.gate.cookie_name}={self._session}; Path=/; HttpOnly"
                headers = {"Location": "/", "Set-Cookie": f"{cookie}; SameSite=Strict"}
                return HTTPStatus.SEE_OTHER, headers, b""
            headers = {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Encoding": "gzip",
                "Content-Security-Policy": self._policy,
            }
            return HTTPStatus.OK, headers, self._page
        if request.path.startswith("/files/"):
            name = file_name(request.path)
            try:
                body = read_inside(self.folder, name)
            except BadInput:
                raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.") from None
            # as a download of no type: a file must never run as a page of this origin
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Security-Policy": "sandbox",
            }
            return HTTPStatus.OK, headers, body
        raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.")

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        status: HTTPStatus,
        headers: dict[str, str],
        body: bytes,
        *,
        only_head: bool = False,
    ) -> None:
        headers = {
            **headers,
            "Content-Length": str(len(body)),
            "Connection": "close",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        if not only_head:
            writer.write(body)
        await writer.drain()

    async def _tunnel(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Hand the connection over to viser: a request of our own making, then bytes both ways."""
        if request.path != "/":
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


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
