"""Requests as bytes: what a browser, an attacker's page or a careless program may send."""

import re
import socket

from waiting import PATIENCE


def ask(port: int, head: str | bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (small letters) and body of the answer to a request's head."""
    data = head if isinstance(head, bytes) else head.encode()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        s.sendall(data)
        answer = b""
        while chunk := _receive(s):
            answer += chunk
            if answer.startswith(b"HTTP/1.1 101"):
                break
    if not answer:
        return 0, {}, b""
    top, _, body = answer.partition(b"\r\n\r\n")
    lines = top.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def _receive(s: socket.socket) -> bytes:
    try:
        return s.recv(65536)
    except (TimeoutError, ConnectionResetError):
        return b""


def get(port: int, path: str = "/", **headers: str) -> str:
    """The head of a GET; header names have _ for -; "" leaves one out.

    With a cookie it is made below the cookie's place, as a browser would.
    """
    path = f"{place_of(headers.get('cookie', ''))}{path}"
    given = {"host": f"127.0.0.1:{port}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    lines = [f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items() if v != "")]
    return "\r\n".join([*lines, "", ""])


def place_of(cookies: str) -> str:
    """The path that our cookie is for, among others."""
    found = re.search(r"pliant_([0-9a-f]+)=", cookies)
    return f"/{found.group(1)}" if found else ""


def websocket(port: int, path: str = "/", **headers: str) -> str:
    """The head of a websocket request of our own page."""
    own = {
        "upgrade": "websocket", "connection": "Upgrade", "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==", "origin": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    return get(port, path, **{**own, **headers})
