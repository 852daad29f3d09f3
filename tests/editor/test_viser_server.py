"""viser itself: reached through the proxy only, without its public tunnel, with limited uploads."""

import socket
import stat
import time
import uuid

import msgspec
import pytest
from raw_http import ask, get
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect, unix_connect

from waiting import PATIENCE, soon

pytest.importorskip("viser")
import viser  # noqa: E402

from pliant.app.editor.proxy import Proxy  # noqa: E402
from pliant.app.editor.viser_server import ViserServer  # noqa: E402

VERSION = f"viser-v{viser.__version__}"


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    refused = []
    inner = ViserServer(label="test", on_refused=refused.append)
    folder = tmp_path_factory.mktemp("folder")
    proxy = Proxy(page=inner.page, connect=inner.connect, folder=folder, secret=inner.secret)
    proxy.start()
    inner.refused, inner.proxy = refused, proxy
    inner.uploaded = []
    button = inner.server.gui.add_upload_button("upload")
    button.on_upload(lambda event: inner.uploaded.append(event.target.value))
    inner.button = button._impl.uuid
    yield inner
    proxy.stop()
    inner.stop()
    assert not inner.path.exists()


def page_of(editor):
    """A websocket as a page opens it."""
    port, gate = editor.proxy.port, editor.proxy.gate
    return connect(
        f"ws://127.0.0.1:{port}/{gate.place}", origin=f"http://127.0.0.1:{port}",
        additional_headers={"Cookie": f"{gate.cookie_name}={gate.session}"},
        subprotocols=[VERSION], max_size=None, compression=None,
    )  # fmt: skip


def send(page, kind, **values):
    page.send(msgspec.msgpack.encode({"type": kind, **values}))


def camera(page):
    """viser counts a page as connected when it has told its camera."""
    send(
        page, "ViewerCameraMessage", wxyz=(1.0, 0.0, 0.0, 0.0), position=(0.0, 0.0, 3.0),
        image_height=100, image_width=100, fov=1.0, near=0.1, far=100.0, look_at=(0.0, 0.0, 0.0),
        up_direction=(0.0, 1.0, 0.0),
    )  # fmt: skip


def test_no_port_is_open_but_the_socket_file(editor):
    assert stat.S_ISSOCK(editor.path.stat().st_mode)
    assert editor.path.parent.stat().st_mode & 0o077 == 0
    sockets = editor.server._websock_server
    assert not isinstance(sockets._port, int)  # it has none


def test_socket_file_demands_the_secret(editor):
    for headers in ({}, {"X-Pliant-Secret": "guess"}):
        with pytest.raises(WebSocketException), unix_connect(
            str(editor.path), uri="ws://pliant/", subprotocols=[VERSION],
            additional_headers=headers,
        ):  # fmt: skip
            pass
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(editor.path))
        s.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nX-Pliant-Secret: {editor.secret}\r\n\r\n".encode())
        assert s.recv(100).startswith(b"HTTP/1.1 403")  # pages come from the proxy


def test_page_connects_and_gets_the_scene(editor):
    with page_of(editor) as page:
        assert page.subprotocol == VERSION
        assert len(page.recv(timeout=PATIENCE)) > 16
        camera(page)
        assert soon(lambda: len(editor.server.get_clients()) == 1)
    assert soon(lambda: not editor.server.get_clients())


def test_page_itself_is_served(editor):
    port, gate = editor.proxy.port, editor.proxy.gate
    status, headers, body = ask(port, get(port, cookie=f"{gate.cookie_name}={gate.session}"))
    assert status == 200
    assert len(body) > 100_000


def test_a_page_cannot_open_the_public_tunnel(editor):
    with page_of(editor) as page:
        page.recv(timeout=PATIENCE)
        send(page, "ShareUrlRequest")
        time.sleep(0.1)
    assert editor.server._share_tunnel is None
    kinds = {kind.__name__ for kind in editor.server._websock_server._incoming_handlers}
    assert not {k for k in kinds if "Share" in k}


def upload(page, editor, name, content, *, size=None, parts=None, cut=512 * 1024):
    transfer = uuid.uuid4().hex
    chunks = [content[i : i + cut] for i in range(0, len(content), cut)]
    send(
        page, "FileTransferStartUpload", source_component_uuid=editor.button,
        transfer_uuid=transfer, filename=name, mime_type="application/octet-stream",
        part_count=len(chunks) if parts is None else parts,
        size_bytes=len(content) if size is None else size,
    )  # fmt: skip
    for i, chunk in enumerate(chunks):
        send(
            page, "FileTransferPart", source_component_uuid=editor.button, transfer_uuid=transfer,
            part_index=i, content=chunk,
        )  # fmt: skip
    return transfer


def test_upload_arrives(editor):
    with page_of(editor) as page:
        camera(page)
        assert soon(lambda: editor.server.get_clients())
        upload(page, editor, "body.ply", b"p" * 600_000)
        assert soon(lambda: editor.uploaded)
    assert (editor.uploaded[-1].name, len(editor.uploaded[-1].content)) == ("body.ply", 600_000)
    assert not editor.refused


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("run.sh", {}, "ending"), ("mesh", {}, "ending"), ("x.ply.exe", {}, "ending"),
        ("mesh.ply", {"size": 65 * 1024**2, "parts": 130}, "64 MB"),
        ("mesh.ply", {"size": 0, "parts": 0}, "empty"), ("mesh.ply", {"size": -5}, "empty"),
        ("mesh.ply", {"parts": 10**9}, "parts"), ("mesh.ply", {"size": 3}, "announced"),
    ],
)  # fmt: skip
def test_uploads_are_refused(editor, name, change, reason):
    editor.refused.clear()
    before = len(editor.uploaded)
    with page_of(editor) as page:
        camera(page)
        assert soon(lambda: editor.server.get_clients())
        upload(page, editor, name, b"0123456789", **change)
        assert soon(lambda: editor.refused)
    assert reason in editor.refused[0]
    assert len(editor.uploaded) == before
    assert soon(lambda: not editor.server.gui._current_file_upload_states)


def test_message_beyond_the_limit_closes_the_page(editor):
    with page_of(editor) as page:
        page.recv(timeout=PATIENCE)

        def too_much():
            page.send(b"x" * (17 * 1024**2))
            while True:
                page.recv(timeout=PATIENCE)

        with pytest.raises(WebSocketException):
            too_much()
