"""A page of another origin, in the same browser that holds the key, gets nothing."""

import functools
import http.server
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from pages import Page, wait_for

from waiting import PATIENCE

SCENE = """
title = "block"
[shape]
type = "box"
center = [0.5, 0.0, 0.0]
size = [1.0, 0.4, 0.4]
[body]
kind = "grid"
spacing = 0.2
[[fixed]]
region = {type = "box", center = [0.0, 0.0, 0.0], size = [0.02, 0.6, 0.6]}
"""

ATTACK = """
<!doctype html><title>other</title><script>
async function attack(port) {
  const out = {};
  for (const path of ["/", "/files/scene.toml"]) {
    try { const r = await fetch(`http://127.0.0.1:${port}${path}`, {credentials: "include"});
          out[path] = "read " + (await r.text()).length; }
    catch (e) { out[path] = "refused"; }
    try { const r = await fetch(`http://127.0.0.1:${port}${path}`,
                                {credentials: "include", mode: "no-cors"});
          out[path + " blind"] = r.status; }
    catch (e) { out[path + " blind"] = "refused"; }
  }
  out.socket = await new Promise((done) => {
    const s = new WebSocket(`ws://127.0.0.1:${port}/`, ["viser-v1.1.1"]);
    s.onopen = () => done("open"); s.onerror = () => done("refused");
  });
  const frame = document.createElement("iframe");
  frame.src = `http://127.0.0.1:${port}/`;
  document.body.appendChild(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
  try { out.frame = "read " + frame.contentDocument.title; } catch (e) { out.frame = "refused"; }
  return out;
}
</script><body></body>
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """`pliant view`, as a person starts it."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "scene.toml").write_text(SCENE)
    process = subprocess.Popen(
        [sys.executable, "-m", "pliant", "view", str(folder / "scene.toml"), "--no-browser",
         "--json", "--threads", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.told = json.loads(process.stdout.readline())
    yield process
    if process.poll() is None:
        process.kill()


@pytest.fixture(scope="module")
def other_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    (folder / "index.html").write_text(ATTACK)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


def test_command_tells_where_it_is(command):
    told = command.told
    assert told["address"].startswith(f"http://127.0.0.1:{told['port']}/?token=")
    assert told["kind"] == "editor"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_foreign_origin_is_refused(browser, command, other_site, host):
    port = command.told["port"]
    context = browser.new_context()
    try:
        page = context.new_page()
        key = context.request.get(command.told["address"])  # this browser holds the cookie
        assert key.status == 200
        assert context.cookies()
        page.goto(f"http://{host}:{other_site}/index.html")
        found = page.evaluate(f"attack({port})")
    finally:
        context.close()
    read = {k: v for k, v in found.items() if v != "refused" and "blind" not in k}
    assert not read
    assert all(v in ("refused", 0) for k, v in found.items() if "blind" in k)


def test_page_without_the_token_is_refused(browser, command):
    context = browser.new_context()
    try:
        answer = context.new_page().goto(f"http://127.0.0.1:{command.told['port']}/")
        assert answer.status == 403
        assert "it has a token" in answer.text()
    finally:
        context.close()


def test_ctrl_c_ends_the_command_and_its_processes(browser, command):
    page = Page(browser, command.told["address"], width=560, height=360)
    page.press("Play")
    wait_for(lambda: page.time() > 0.0)
    children = _children(command.pid)
    assert children
    command.send_signal(signal.SIGINT)
    assert command.wait(PATIENCE) == 0
    page.close()
    wait_for(lambda: not any(_alive(c) for c in children))
    assert command.stdout.read() == ""  # one object, nothing else
    assert "Traceback" not in command.stderr.read()


def _children(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    parent = int(f.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(name))
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
