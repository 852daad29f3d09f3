"""viser where only the proxy reaches it: on a socket file of this user, behind a secret header.

viser 1.1 has no option for either, but it looks `websockets.asyncio.server.serve` up when it
starts; for that moment the name stands for a function that listens on a socket file and checks the
header. Uploads are limited before viser stores their first byte, and its button that opens a
public tunnel to the editor is taken out.
"""

import asyncio
import contextlib
import hmac
import http
import io
import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pliant.app.editor.folder import check_upload
from pliant.core.errors import BadInput, MissingExtra

MAX_MESSAGE = 16 * 1024**2
"""Bytes of a message from a page; the largest is a screenshot. Uploads come in parts of 512 kB."""

MAX_TRANSFERS = 4
"""Uploads that may be under way at once."""

_starting = threading.Lock()


class ViserServer:
    """A viser server at `path` with the `secret` it demands; `server` is viser's own object."""

    def __init__(self, *, label: str, on_refused: Callable[[str], None]):
        try:
            import viser
        except ImportError:
            raise MissingExtra("viser", "view", "The editor") from None
        self.secret = secrets.token_urlsafe(24)
        self.folder = Path(tempfile.mkdtemp(prefix="pliant-view-"))  # 0700
        self.path = self.folder / "viser.sock"
        logging.getLogger("websockets").setLevel(logging.CRITICAL)
        with _starting, self._guarded_serve(), quiet():
            self.server = viser.ViserServer(host="127.0.0.1", port=0, label=label, verbose=False)
        self._take_tunnel_out()
        self._limit_uploads(on_refused)

    @property
    def page(self) -> bytes:
        """viser's page, one HTML file."""
        import viser

        return (Path(viser.__file__).parent / "client" / "build" / "index.html").read_bytes()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to viser."""
        return await asyncio.open_unix_connection(self.path)

    def stop(self) -> None:
        """Close viser and remove its socket."""
        with quiet():
            self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _guarded_serve(self) -> Iterator[None]:
        """While active, `serve` listens on the socket file and demands the secret."""
        import websockets.asyncio.server as module
        from websockets import Headers
        from websockets.http11 import Response

        original: Any = module.serve
        secret, path = self.secret, self.path

        def refuse(connection, request):
            given = request.headers.get("X-Pliant-Secret", "")
            websocket = request.headers.get("Upgrade", "").lower() == "websocket"
            if not websocket or not hmac.compare_digest(given.encode(), secret.encode()):
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", Headers(), b"")
            return None

        def serve(handler, host, port, **options):
            options |= {"process_request": refuse, "max_size": MAX_MESSAGE}
            return original(handler, unix=True, path=str(path), **options)

        module.serve = serve  # type: ignore[assignment]
        try:
            yield
        finally:
            module.serve = original

    def _take_tunnel_out(self) -> None:
        """A page must not be able to publish the editor through viser's share server."""
        from viser import _messages

        for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
            self.server._websock_server.unregister_handler(message)

    def _limit_uploads(self, on_refused: Callable[[str], None]) -> None:
        """Check name and size when an upload is announced, and that no more arrives than that."""
        from viser import _messages

        gui: Any = self.server.gui
        handlers = gui._websock_interface._incoming_handlers
        start, part = gui._handle_file_transfer_start, gui._handle_file_transfer_part
        transfers: dict = gui._current_file_upload_states

        def refuse(message, reason):
            # the page's button waits for its bytes to arrive and shows them arriving
            queue = gui._websock_interface.queue_message
            source, transfer = message.source_component_uuid, message.transfer_uuid
            queue(_messages.FileTransferPartAck(source, transfer, 0, 0))
            queue(_messages.RemoveNotificationMessage(f"upload-{transfer}"))
            on_refused(f"Upload refused: {reason}")

        def checked_start(client_id, message):
            try:
                check_upload(message.filename, message.size_bytes)
                if not 0 < message.part_count <= message.size_bytes // 1024 + 1:
                    raise BadInput(f"{message.filename[:60]}: comes in too many parts.")
                if len(transfers) >= MAX_TRANSFERS:
                    raise BadInput("Too many uploads at once: try again.")
            except BadInput as error:
                refuse(message, error)
                return
            start(client_id, message)

        def checked_part(client_id, message):
            state = transfers.get(message.transfer_uuid)
            if state is None:
                return
            if state["transferred_bytes"] + len(message.content) > state["total_bytes"]:
                transfers.pop(message.transfer_uuid, None)
                refuse(message, "more arrived than was announced.")
                return
            part(client_id, message)

        handlers[_messages.FileTransferStartUpload] = [checked_start]
        handlers[_messages.FileTransferPart] = [checked_part]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what viser prints: standard output belongs to the command."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
