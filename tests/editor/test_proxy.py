"""Nobody but a page of ours, opened with the token, gets through; no file outside the folder."""

import asyncio
import os
import socket
import threading

import pytest
from raw_http import ask, get, place_of, websocket

from pliant.app.editor.proxy import Proxy
from pliant.core.errors import BadInput
from waiting import PATIENCE

PAGE = b"<!doctype html><title>page</title>"


class Inner:
    """Stands for viser: notes what arrives and answers a handshake, then echoes."""

    def __init__(self, path):
        self.path, self.heads = path, []
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        async def serve(reader, writer):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

        def run():
            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(asyncio.start_unix_server(serve, path))
            ready.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        ready.wait()

    async def connect(self):
        return await asyncio.open_unix_connection(self.path)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    top = tmp_path_factory.mktemp("proxy")
    folder = top / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "mesh.ply").write_bytes(b"a mesh")
    (folder / "with space.toml").write_bytes(b"a scene")
    (folder / ".hidden").write_bytes(b"hidden")
    (folder / "below" / "deep.txt").write_bytes(b"deep")
    (top / "secret.txt").write_bytes(b"SECRET")
    (folder / "link.txt").symlink_to(top / "secret.txt")
    (folder / "loop.txt").symlink_to(folder / "mesh.ply")
    (folder / "up").symlink_to(top)
    os.mkfifo(folder / "pipe.txt")
    inner = Inner(str(top / "inner.sock"))
    proxy = Proxy(page=PAGE, connect=inner.connect, folder=folder, secret="between-us")
    proxy.start()
    proxy.inner = inner
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def port(served):
    return served.port


@pytest.fixture(scope="module")
def token(served):
    return served.address.partition("token=")[2]


@pytest.fixture(scope="module")
def cookie(port, token):
    status, headers, body = ask(port, get(port, f"/?token={token}"))
    value, *attributes = headers["set-cookie"].split("; ")
    assert (status, headers["location"], body) == (303, f"{place_of(value)}/", b"")
    assert {"HttpOnly", "SameSite=Strict", f"Path={place_of(value)}"} <= set(attributes)
    assert token not in value  # the address is not the key to later visits
    return value


def test_listens_on_loopback_only(served):
    assert {s.getsockname()[0] for s in served._server.sockets} == {"127.0.0.1"}
    assert served.address.startswith("http://127.0.0.1:")
    assert len(served.address.partition("token=")[2]) >= 32


def test_page_for_a_visitor_with_the_cookie(port, cookie):
    import gzip

    status, headers, body = ask(port, get(port, cookie=cookie))
    assert status == 200
    assert gzip.decompress(body) == PAGE
    policy = headers["content-security-policy"]
    assert f"ws://127.0.0.1:{port}" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", "?Token=x", "?token=a&token=b"])
def test_without_token_or_cookie(port, given):
    assert ask(port, get(port, f"/{given}"))[0] == 403


def test_wrong_cookies(port, cookie, token):
    name, _, value = cookie.partition("=")
    wrong = (f"{name}=", f"{name}=x", f"{name}={value}x", f"x{name}={value}", f"{name}={token}")
    for text in wrong:
        assert ask(port, get(port, cookie=text))[0] == 403, text
    assert ask(port, get(port, cookie=f"a=b; {cookie}; c=d"))[0] == 200


def test_the_cookie_is_worth_nothing_elsewhere(port, cookie):
    """A server on another port is sent no cookie of another path; one that guesses gets nowhere."""
    alone = get(port).replace("\r\n\r\n", f"\r\ncookie: {cookie}\r\n\r\n")
    for path in ("/", "/files/mesh.ply", f"{place_of(cookie)}x/", "/0123456789ab/"):
        assert ask(port, alone.replace("GET / ", f"GET {path} "))[0] == 403
    assert ask(port, alone.replace("GET / ", f"GET {place_of(cookie)} "))[0] == 200


def test_a_token_for_one_visit(served, port, token):
    other = served.address_for_one_visit().partition("token=")[2]
    assert other != token
    head = get(port, f"/?token={other}")
    assert ask(port, head.replace("GET", "HEAD", 1))[0] == 303  # a look is no visit
    assert [ask(port, head)[0] for _ in range(2)] == [303, 403]


def test_too_many_fields(port, token):
    fields = "&".join(f"a{k}=1" for k in range(30))
    assert ask(port, get(port, f"/?{fields}&token={token}"))[0] == 400


def test_token_beside_a_copy_of_itself_is_refused(port, token):
    assert ask(port, get(port, f"/?token={token}&token={token}"))[0] == 403


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1",
     "127.0.0.1.nip.io:{port}",
     "localhost.evil.example:{port}", "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example",
     "169.254.0.1:{port}"],
)  # fmt: skip
def test_foreign_host_is_refused_even_with_the_key(port, cookie, token, host):
    host = host.format(port=port)
    assert ask(port, get(port, host=host, cookie=cookie))[0] == 403
    assert ask(port, get(port, f"/?token={token}", host=host))[0] == 403
    assert ask(port, websocket(port, host=host, cookie=cookie))[0] == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_own_names_are_served(port, cookie, name):
    assert ask(port, get(port, host=f"{name}:{port}", cookie=cookie))[0] == 200


FOREIGN = [
    "https://evil.example", "http://evil.example:{port}", "null", "http://127.0.0.1:1",
    "https://127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example", "http://localhost",
    "file://", "http://127.0.0.1:{port}/", "chrome-extension://abc",
]  # fmt: skip


@pytest.mark.parametrize("origin", FOREIGN)
def test_foreign_origin_is_refused_even_with_the_key(served, port, cookie, origin):
    before = len(served.inner.heads)
    origin = origin.format(port=port)
    assert ask(port, get(port, origin=origin, cookie=cookie))[0] == 403
    assert ask(port, websocket(port, origin=origin, cookie=cookie))[0] == 403
    assert len(served.inner.heads) == before  # viser never heard of it


def test_websocket_needs_an_origin_and_the_cookie(served, port, cookie):
    before = len(served.inner.heads)
    assert ask(port, websocket(port, origin="", cookie=cookie))[0] == 403
    assert ask(port, websocket(port))[0] == 403
    assert ask(port, websocket(port, "/other", cookie=cookie))[0] == 404
    assert ask(port, websocket(port, "/../", cookie=cookie))[0] == 404
    assert len(served.inner.heads) == before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_embedding_by_other_pages_is_refused(port, cookie, token, site):
    for mode in ("no-cors", "cors", "navigate"):
        head = get(port, cookie=cookie, sec_fetch_site=site, sec_fetch_mode=mode)
        assert ask(port, head)[0] == 403
    head = get(port, f"/?token={token}", sec_fetch_site=site, sec_fetch_mode="no-cors")
    assert ask(port, head)[0] == 403
    # a link in a chat window, followed by a person who has the token
    head = get(port, f"/?token={token}", sec_fetch_site=site, sec_fetch_mode="navigate")
    assert ask(port, head)[0] == 303


def test_websocket_reaches_viser_with_the_secret_and_nothing_else(served, port, cookie):
    head = websocket(
        port, cookie=cookie, sec_websocket_protocol="viser-v1.1.1", x_pliant_secret="guessed",
        x_forwarded_for="evil", sec_websocket_extensions="permessage-deflate",
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        s.sendall(head.encode() + b"early")
        answer = b""
        while not answer.endswith(b"early"):
            answer += s.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101")
        s.sendall(b"x" * 300_000)
        echoed = 0
        while echoed < 300_000:
            echoed += len(s.recv(65536))
    arrived = served.inner.heads[-1].decode().lower().split("\r\n")
    assert arrived[0] == "get / http/1.1"
    assert "x-pliant-secret: between-us" in arrived
    assert "sec-websocket-protocol: viser-v1.1.1" in arrived
    names = {line.partition(":")[0] for line in arrived[1:] if line}
    assert names == {"host", "upgrade", "connection", "x-pliant-secret", "sec-websocket-key",
                     "sec-websocket-version", "sec-websocket-protocol"}  # fmt: skip


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_only_get(port, cookie, method):
    head = get(port, cookie=cookie).replace("GET", method, 1)
    assert ask(port, head)[0] == 405


BROKEN = [
    "GET http://127.0.0.1/ HTTP/1.1\r\nhost: x\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/2\r\n\r\n", "GET /\r\n\r\n", "/ HTTP/1.1\r\n\r\n", "\r\n\r\n",
    "GET  / HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n", "GET /\x00 HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nhost : x\r\n\r\n", "GET / HTTP/1.1\r\n host: x\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n", "GET / HTTP/1.1\nhost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("head", BROKEN)
def test_bent_grammar_is_refused(port, head):
    assert ask(port, head)[0] == 400


@pytest.mark.parametrize("name", ["origin", "cookie", "host"])
def test_repeated_headers_are_refused(port, cookie, name):
    value = {"origin": f"http://127.0.0.1:{port}", "cookie": cookie, "host": f"127.0.0.1:{port}"}
    head = get(port, cookie=cookie, origin=value["origin"])
    twice = head.replace("\r\n\r\n", f"\r\n{name}: {value[name]}\r\n\r\n")
    assert ask(port, head)[0] == 200
    assert ask(port, twice)[0] == 400


def test_bodies_are_refused(port, cookie):
    for header in ("Content-Length: 5", "Transfer-Encoding: chunked"):
        head = get(port, cookie=cookie).replace("\r\n\r\n", f"\r\n{header}\r\n\r\nhello")
        assert ask(port, head)[0] == 400


def test_huge_heads_are_refused(port, cookie):
    assert ask(port, get(port, cookie=cookie, x="y" * 20_000))[0] == 431
    assert ask(port, b"G" * 40_000)[0] == 431


def test_second_request_in_one_connection_is_not_read(port, cookie):
    status, headers, _ = ask(port, get(port, cookie=cookie) + get(port, "/files/mesh.ply"))
    assert status == 200
    assert headers["connection"] == "close"


# --- files


def test_files_of_the_folder_are_downloads(port, cookie):
    status, headers, body = ask(port, get(port, "/files/mesh.ply", cookie=cookie))
    assert (status, body) == (200, b"a mesh")
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"].startswith("attachment")
    assert ask(port, get(port, "/files/with%20space.toml", cookie=cookie))[2] == b"a scene"
    assert ask(port, get(port, "/files/mesh.ply"))[0] == 403


OUTSIDE = [
    "/../secret.txt", "/files/../secret.txt", "/files/../../secret.txt", "/files/..%2fsecret.txt",
    "/files/%2e%2e/secret.txt", "/files/%2e%2e%2fsecret.txt", "/files/%252e%252e%252fsecret.txt",
    "/files/..%5csecret.txt", "/files/..\\secret.txt", "/files/.%2e/secret.txt",
    "/files/%c0%ae%c0%ae/secret.txt", "/files/%2e%2e%c0%afsecret.txt", "/files//etc/passwd",
    "/files/%2fetc%2fpasswd", "/files/mesh.ply%00.txt", "/files/mesh.ply/", "/files/mesh.ply/..",
    "/files/./mesh.ply", "/files/", "/files", "/files/..", "/files/.", "/files/below",
    "/files/below/deep.txt", "/files/below%2fdeep.txt", "/files/.hidden", "/files/link.txt",
    "/files/loop.txt", "/files/up", "/files/up/secret.txt", "/files/up%2fsecret.txt",
    "/files/pipe.txt", "/files/none.txt", "/secret.txt", "//secret.txt", "/index.html",
    "/..;/secret.txt", "/files/C:%5csecret.txt", "/%2e%2e/%2e%2e/etc/passwd", "/files/~root",
    "/files/mesh.ply?/../../secret.txt#", "/files/%ef%bc%8e%ef%bc%8e/secret.txt",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_the_folder(port, cookie, path):
    status, _, body = ask(port, get(port, path, cookie=cookie))
    assert b"SECRET" not in body
    assert b"root:" not in body
    assert status == 404 or (status == 200 and path.startswith("/files/mesh.ply?"))


def test_head_has_no_body(port, cookie):
    head = get(port, "/files/mesh.ply", cookie=cookie).replace("GET", "HEAD", 1)
    status, headers, body = ask(port, head)
    assert (status, headers["content-length"], body) == (200, "6", b"")


# --- staying up


def test_port_in_use_is_one_sentence(served, tmp_path):
    other = Proxy(
        page=PAGE, connect=served.inner.connect, folder=tmp_path, secret="s", port=served.port
    )
    with pytest.raises(BadInput, match="choose another --port"):
        other.start()


def test_stop_closes_everything(tmp_path):
    async def nowhere():
        raise OSError

    proxy = Proxy(page=PAGE, connect=nowhere, folder=tmp_path, secret="s")
    proxy.start()
    waiting = socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE)
    cookie = f"{proxy.gate.cookie_name}={proxy.gate.session}"
    assert ask(proxy.port, websocket(proxy.port, cookie=cookie))[0] == 502
    proxy.stop()
    assert waiting.recv(10) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE)
