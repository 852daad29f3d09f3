"""Simulated frames a second in the editor, a 5,000-cell torus, with a page connected.

The page is a websocket that reads everything, as a browser with a graphics card would; or, with
--chromium, a real one that draws by software on the same cores.
"""

import argparse
import contextlib
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import viser
from websockets.sync.client import connect

from pliant.app.describing.scene_files import build_scene
from pliant.app.describing.scenes import builtin_description
from pliant.app.editor.editor import Editor
from pliant.app.editor.opening import open_target

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (0.0, 0.0, 5.0),
    "image_height": 800, "image_width": 1200, "fov": 1.0, "near": 0.1, "far": 100.0,
    "look_at": (0.0, 0.0, 0.0), "up_direction": (0.0, 1.0, 0.0),
}  # fmt: skip


def read_all(editor: Editor, got: list[int], stop: threading.Event) -> None:
    """Be a page."""
    port, gate = editor.proxy.port, editor.proxy.gate
    with connect(
        f"ws://127.0.0.1:{port}/", origin=f"http://127.0.0.1:{port}", max_size=None,
        subprotocols=[f"viser-v{viser.__version__}"], compression=None,
        additional_headers={"Cookie": f"{gate.cookie_name}={gate.session}"},
    ) as page:  # fmt: skip
        page.send(msgspec.msgpack.encode(CAMERA))
        while not stop.is_set():
            try:
                got.append(len(page.recv(timeout=0.5)))
            except TimeoutError:
                continue


def look(editor: Editor, stop: threading.Event) -> None:
    """Be a page in a headless Chromium, shadows off, as the hint on that switch advises."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader",
             "--enable-unsafe-swiftshader"]  # fmt: skip
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport={"width": 900, "height": 600})
        page.goto(editor.address)
        while not stop.is_set():
            page.wait_for_timeout(500)
        with contextlib.suppress(Exception):
            browser.close()


def chromium_seconds() -> float:
    """CPU time of the Chromium processes below this one."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
    total = 0.0
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            with contextlib.suppress(OSError):
                if "chrom" in Path(f"/proc/{pid}/comm").read_text():
                    total += cpu_seconds(pid)
    return total


def cpu_seconds(pid: int) -> float:
    """Of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(seconds: float, spacing: float, chromium: bool) -> None:
    """Print cells, frames a second and bytes."""
    description = builtin_description("torus")
    description["body"]["spacing"] = spacing
    scene = build_scene(description)
    editor = Editor(replace(open_target("bar"), scene=scene, name="torus", folder=Path.cwd()))
    editor.start()
    got: list[int] = []
    stop = threading.Event()
    if chromium:
        editor.viewport.set_shadows(False)
        page = threading.Thread(target=look, args=(editor, stop))
    else:
        page = threading.Thread(target=read_all, args=(editor, got, stop))
    page.start()
    try:
        while not editor.processes():
            time.sleep(0.1)
        editor.desk.post(editor.simulation.play)
        while len(editor.session.history) < 10:
            time.sleep(0.1)
        busy = cpu_seconds(editor.processes()[0]), time.process_time(), chromium_seconds()
        first, began, sent = len(editor.session.history), time.perf_counter(), sum(got)
        time.sleep(seconds)
        frames, took = len(editor.session.history) - first, time.perf_counter() - began
        worker = (cpu_seconds(editor.processes()[0]) - busy[0]) / frames
        server = (time.process_time() - busy[1]) / frames
        drawing = (chromium_seconds() - busy[2]) / frames
        step = editor.session.history[-1].numbers["step_ms"]
        print(
            f"{len(scene.body.cells)} cells: {frames / took:.1f} frames/s, last step {step:.1f} ms,"
            f" {(sum(got) - sent) / took / 1e6:.2f} MB/s to the page,"
            f" CPU {1e3 * worker:.0f} ms a frame in the worker, {1e3 * server:.0f} in the server,"
            f" {1e3 * drawing:.0f} in Chromium,"
            f" load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
    finally:
        stop.set()
        page.join()
        editor.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--spacing", type=float, default=0.0865)
    parser.add_argument("--chromium", action="store_true", help="a real page, drawn by software")
    given = parser.parse_args()
    measure(given.seconds, given.spacing, given.chromium)
