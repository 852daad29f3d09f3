"""Visitors that say nothing, hardly anything, or take nothing keep nobody out and cost nothing."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest
from raw_http import ask, get

from pliant.app.editor import proxy as module
from pliant.app.editor.proxy import Proxy

SOON = 2.0
"""Seconds within which a page must load, whoever else is there."""

MEMORY = 50 * 1024**2
LARGE = 100 * 1024**2


@pytest.fixture
def served(tmp_path):
    async def nowhere():
        raise OSError

    with (tmp_path / "large.zip").open("wb") as stream:
        stream.truncate(LARGE)
    proxy = Proxy(page=bytes(10**6), connect=nowhere, folder=tmp_path, secret="s")
    proxy.start()
    yield proxy
    proxy.stop()


def visitors(port: int, count: int, stack: contextlib.ExitStack) -> list[socket.socket]:
    return [
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10.0))
        for _ in range(count)
    ]


def load(proxy: Proxy) -> float:
    """Seconds until the page is there, by the printed address."""
    begun = time.monotonic()
    token = proxy.address.partition("token=")[2]
    status, headers, _ = ask(proxy.port, get(proxy.port, f"/?token={token}"))
    assert status == 303
    cookie = headers["set-cookie"].partition(";")[0]
    assert ask(proxy.port, get(proxy.port, cookie=cookie))[0] == 200
    return time.monotonic() - begun


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_two_hundred_silent_and_fifty_slow_visitors(served):
    with contextlib.ExitStack() as stack:
        visitors(served.port, 200, stack)
        slow = visitors(served.port, 50, stack)
        times = []
        for k in range(10):
            for s in slow:
                with contextlib.suppress(OSError):  # it had to make room
                    s.sendall(b"GET /"[k % 5 : k % 5 + 1])
            times.append(load(served))
        assert len(served._waiting) <= module.MAX_WAITING
    assert max(times) < SOON


def test_a_hundred_aborted_downloads(served):
    cookie = f"{served.gate.cookie_name}={served.gate.session}"
    head = get(served.port, "/files/large.zip", cookie=cookie).encode()
    load(served)
    before, times = memory(), []
    for _ in range(10):
        with contextlib.ExitStack() as stack:
            for s in visitors(served.port, 10, stack):
                s.sendall(head)
                assert s.recv(15).startswith(b"HTTP/1.1 200")
            times.append(load(served))
    assert max(times) < SOON
    assert memory() - before < MEMORY


def test_stalled_downloads_are_let_go(served, monkeypatch):
    monkeypatch.setattr(module, "STALL_SECONDS", 0.5)
    cookie = f"{served.gate.cookie_name}={served.gate.session}"
    head = get(served.port, "/files/large.zip", cookie=cookie).encode()
    before = memory()
    with contextlib.ExitStack() as stack:
        for s in visitors(served.port, 20, stack):
            s.sendall(head)
        assert load(served) < SOON
        assert memory() - before < MEMORY
        end = time.monotonic() + 10.0
        while served._served and time.monotonic() < end:
            time.sleep(0.05)
        assert served._served == 0


def test_a_whole_download_arrives(served, tmp_path):
    data = bytes(range(256)) * 20_000
    (tmp_path / "whole.ply").write_bytes(data)
    cookie = f"{served.gate.cookie_name}={served.gate.session}"
    assert ask(served.port, get(served.port, "/files/whole.ply", cookie=cookie))[2] == data


def test_many_pages_at_once(served):
    found: list[int] = []
    cookie = f"{served.gate.cookie_name}={served.gate.session}"

    def visit():
        found.append(ask(served.port, get(served.port, cookie=cookie))[0])

    threads = [threading.Thread(target=visit) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 40
