"""The editor as a whole: server, proxy, panels, and who is connected."""

import threading
import time
from typing import Any

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.desk import Desk
from pliant.app.editor.first_visit import open_browser
from pliant.app.editor.history import Frame
from pliant.app.editor.keys import bind_keys
from pliant.app.editor.observed import ObservedPoints
from pliant.app.editor.opening import Opened
from pliant.app.editor.panels.boundary import BoundaryPanel
from pliant.app.editor.panels.files import FilesPanel
from pliant.app.editor.panels.fit import FitPanel
from pliant.app.editor.panels.load import LoadPanel
from pliant.app.editor.panels.material import MaterialPanel
from pliant.app.editor.panels.mesh import MeshPanel
from pliant.app.editor.panels.reconstruct import ReconstructPanel
from pliant.app.editor.panels.shape import ShapePanel
from pliant.app.editor.panels.solver import SolverPanel
from pliant.app.editor.panels.timeline import DRAWN_SECONDS, PLOT_SECONDS, TimelinePanel
from pliant.app.editor.panels.view import ViewPanel
from pliant.app.editor.picking import first_hit
from pliant.app.editor.proxy import Proxy
from pliant.app.editor.replay import Replay
from pliant.app.editor.session import Session
from pliant.app.editor.simulation import Simulation
from pliant.app.editor.theme import DARK, LIGHT
from pliant.app.editor.viewport import Viewport
from pliant.app.editor.viser_server import ViserServer

LINGER = 3.0
"""Seconds after the last page has gone until the processes end: a reload takes less."""

PANEL_WIDTH = 380
"""Pixels; labels with units fit on one line."""


class Editor:
    """Serves from `start` to `stop`; `address` is what to open."""

    def __init__(
        self,
        opened: Opened,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        device: str = "cpu",
        threads: int | None = None,
        dark: bool = False,
    ):
        self.opened = opened
        self.desk = Desk(self._complain)
        self.viser = ViserServer(label=f"Pliant: {opened.name}", on_refused=self._refused)
        try:
            self._make(opened, host, port, device, threads, dark)
        except BaseException:
            self.viser.stop()
            raise

    def _make(
        self, opened: Opened, host: str, port: int, device: str, threads: int | None, dark: bool
    ) -> None:
        self.proxy = Proxy(
            page=self.viser.page, connect=self.viser.connect, folder=opened.folder,
            secret=self.viser.secret, host=host, port=port,
        )  # fmt: skip
        server: Any = self.viser.server
        self.server = server
        self.session = Session(opened.scene, name=opened.name, folder=opened.folder)
        for frame in opened.frames:
            self.session.history.append(frame)
        self.simulation = Simulation(self.session, self.desk, device=device, threads=threads)
        self.viewport = Viewport(server, self.session)
        self.viewport.set_theme(DARK if dark else LIGHT)
        self.context = Context(
            server, self.desk, self.session, self.simulation, self.viewport, self._say,
            self._complain,
        )  # fmt: skip
        self.observed = ObservedPoints(server.scene)
        self.reconstruct: ReconstructPanel | None = None
        self.solver: SolverPanel | None = None
        self.load: LoadPanel | None = None
        self.fit: FitPanel | None = None
        self._machine = (device, threads)
        self._drawn = self._plotted = 0.0
        self._arrivals: list[float] = []
        self._build()
        self._connect()

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self.proxy.address

    def open_browser(self) -> None:
        """Show the page in the user's browser."""
        open_browser(self.viser.folder, self.proxy.address_for_one_visit())

    def start(self) -> None:
        """Serve."""
        try:
            self.proxy.start()
        except Exception:
            self.viser.stop()
            raise
        self.desk.start()
        self.desk.post(self._new_body)

    def stop(self) -> None:
        """End everything."""
        self.replay.pause()
        if self._timer is not None:
            self._timer.cancel()
        self.desk.stop()
        self._end_processes()
        self.proxy.stop()
        self.viser.stop()

    # --- the page

    def _build(self) -> None:
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        kind = self.opened.kind
        c = self.context
        self.timeline = TimelinePanel(c, edits=kind == "editor")
        tabs = gui.add_tab_group()
        with_panel: list[Any] = [self.timeline]

        def tab(label: str, make: Any) -> Any:
            with tabs.add_tab(label):
                panel = make()
            with_panel.append(panel)
            return panel

        if kind == "fit":
            assert self.opened.fit is not None
            found = self.opened.fit
            panel: FitPanel = tab("Fit", lambda: FitPanel(c, self.observed, found))
            panel.restart = self._restart
            self.fit = panel
            self.observed.load(found.seen, self.session.body)
        if kind == "editor":
            tab("Shape", lambda: ShapePanel(c))
            tab("Mesh", lambda: MeshPanel(c))
            tab("Material", lambda: MaterialPanel(c))
            tab("Boundary", lambda: BoundaryPanel(c))
            load: LoadPanel = tab("Load", lambda: LoadPanel(c))
            load.on_picking = self._bind_surface
            self.load = load
            self.solver = tab("Solver", lambda: SolverPanel(c))
        self.view = tab("View", lambda: ViewPanel(c))
        if kind == "editor":
            self.reconstruct = tab(
                "Reconstruct", lambda: ReconstructPanel(c, self.observed, self._machine)
            )
        files = tab("Files", lambda: FilesPanel(c, can_open=kind == "editor"))
        files.shown_frame = lambda: self.timeline.shown
        c.panels.extend(with_panel)
        self.timeline.on_run = self._run
        self.timeline.on_shown = self._shown
        self.replay = Replay(self.desk, self.session.history, self._show_index)
        self.timeline.is_playing = lambda: self.simulation.running or self.replay.playing
        bind_keys(
            gui, lambda order: self.desk.post(lambda: self._key(order)), edits=kind == "editor"
        )

    def _connect(self) -> None:
        self.session.listeners.append(self._session_changed)
        self.simulation.on_frame = self._frame
        self.simulation.on_state = self._state
        self.simulation.on_failure = self._failed
        self.simulation.on_notice = self._say
        self.viewport.on_surface_made = self._listen_to_surface
        self._timer: threading.Timer | None = None
        self.server.on_client_connect(lambda client: self.desk.post(self._came))
        self.server.on_client_disconnect(lambda client: self.desk.post(self._left))

    # --- pages come and go

    def _came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.opened.kind == "editor":
            self.simulation.warm_up()
        elif self.opened.kind == "fit" and len(self.session.history) == 0:
            self._restart()

    def _left(self) -> None:
        if self.server.get_clients() or self._timer is not None:
            return
        self._timer = threading.Timer(LINGER, lambda: self.desk.post(self._nobody))
        self._timer.daemon = True
        self._timer.start()

    def _nobody(self) -> None:
        self._timer = None
        if not self.server.get_clients():
            self.replay.pause()
            self._end_processes()

    def _end_processes(self) -> None:
        self.simulation.stop()
        if self.reconstruct is not None:
            self.reconstruct.stop()

    def processes(self) -> list[int]:
        """Numbers of the processes that run for the editor."""
        fit = self.reconstruct.pid if self.reconstruct is not None else None
        return [pid for pid in (self.simulation.pid, fit) if pid is not None]

    # --- what happens

    def _key(self, order: str) -> None:
        """A key of the page: see KEYS."""
        leaps = {"Back": -1, "Forth": 1, "First": -(10**9), "Last": 10**9}
        if order in leaps:
            self.replay.pause()
            self.timeline.go(leaps[order])
        elif order == "Play":
            self._run("Pause" if self.timeline.is_playing() else "Play")
        else:
            self._run(order)

    def _run(self, order: str) -> None:
        self._clear_message()
        if order == "Undo":
            self.session.undo()
            self._say("The last edit is undone.")
        elif order == "Redo":
            self.session.redo()
            self._say("The edit is made again.")
        elif self.opened.kind == "player":
            self._replay_order(order)
        elif order == "Play":
            self.simulation.play()
        elif order == "Pause":
            self.simulation.pause()
        elif order == "Step":
            if self.simulation.running:
                self.simulation.pause()
            self.simulation.step()
        elif order == "Reset":
            self.simulation.reset()
            self.timeline.show_last()

    def _replay_order(self, order: str) -> None:
        at = int(self.timeline.frame.value)
        last = len(self.session.history) - 1
        if order == "Play":
            self.replay.play(at)
        else:
            self.replay.pause()
        if order == "Step":
            self._show_index(min(at + 1, last))
        elif order == "Reset":
            self._show_index(0)
        self.timeline.show_status()

    def _restart(self) -> None:
        """A fit's scene from the start to the end of the recording."""
        self.simulation.reset()
        self.simulation.play()

    def _show_index(self, index: int) -> None:
        self.timeline.show(self.session.history[index], index)

    def _session_changed(self, what: str) -> None:
        if what == "body":
            self._new_body()
        else:
            self.viewport.new_scene()
            self.context.refresh()

    def _new_body(self) -> None:
        self.viewport.new_body()
        self.context.refresh()
        for i in range(len(self.session.history)):
            self.timeline.measure(self.session.history[i])
        if self.opened.kind == "player":
            self._show_index(len(self.session.history) - 1)
        else:
            self.timeline.show_last()
        if self.opened.kind == "editor" and self.server.get_clients():
            self.simulation.warm_up()

    def _frame(self, frame: Frame) -> None:
        self.timeline.measure(frame)
        now = time.monotonic()
        self._arrivals = [*self._arrivals[-15:], now]
        span = self._arrivals[-1] - self._arrivals[0]
        self.timeline.rate = (len(self._arrivals) - 1) / span if span > 0.0 else 0.0
        if self.opened.kind == "fit" and frame.t >= self.observed.last_time - 1e-9:
            self.simulation.pause()
            if frame.t > self.observed.last_time + 0.5 * self.session.scene.dt:
                self.session.history.cut_after(len(self.session.history) - 2)
                return  # computed before the pause arrived
        if self.simulation.running and now - self._drawn < DRAWN_SECONDS:
            return
        self._drawn = now
        self.timeline.show_last()
        if self.solver is not None and now - self._plotted > PLOT_SECONDS:
            self._plotted = now
            self.solver.plot()

    def _shown(self, frame: Frame | None) -> None:
        self.view.show_legend()
        if self.solver is not None:
            self.solver.show(frame)
        if self.observed.present:
            t = 0.0 if frame is None else frame.t
            self.observed.show(t, self.viewport.surface_points())
            if self.fit is not None:
                self.fit.show()

    def _state(self) -> None:
        self._arrivals = []
        if self.simulation.running:
            self._clear_message()
        else:
            self.timeline.show_last()
            if self.solver is not None:
                self.solver.plot()
        self._bind_surface()
        self.timeline.show_status()

    def _failed(self, sentence: str) -> None:
        self._complain(sentence)
        self.timeline.show_last()

    # --- the mouse on the body

    def _listen_to_surface(self, handle: Any) -> None:
        self._surface = handle
        self._grabbed: int | None = None
        self._draggable = self._clickable = False
        self._bind_surface()

    def _bind_surface(self) -> None:
        """While it plays the left button pulls the body, while a load is placed it picks a point.

        Else the body lets the mouse through, to the view and to the arrows inside it.
        """
        handle = getattr(self, "_surface", None)
        if handle is None or self.opened.kind != "editor":
            return

        async def dragged(event: Any) -> None:
            self.desk.post(lambda: self._dragged(event), key=f"drag {event.phase}")

        async def clicked(event: Any) -> None:
            self.desk.post(lambda: self._clicked(event))

        pulling, picking = self.simulation.running, self.load is not None and self.load.picking
        if pulling != self._draggable:
            self._draggable = pulling
            if pulling:
                handle.on_drag(dragged)
            else:
                handle.remove_drag_callback("all")
        if picking != self._clickable:
            self._clickable = picking
            if picking:
                handle.on_click(clicked)
            else:
                handle.remove_click_callback("all")

    def _dragged(self, event: Any) -> None:
        if event.phase == "start":
            self._grabbed = self._nearest(np.array(event.start_position))
        if event.phase == "end" or self._grabbed is None:
            self._grabbed = None
            self.simulation.release()
            return
        assert self.load is not None
        target = np.array(event.end_position, float)
        self.simulation.pull(self._grabbed, target, float(self.load.strength.value))

    def _clicked(self, event: Any) -> None:
        if self.load is None or not self.load.picking or self.session.body.dim != 3:
            return
        origin, ray = np.array(event.ray_origin), np.array(event.ray_direction)
        facets = self.session.body.surface.facets
        at = first_hit(self.viewport.surface_points(), facets, origin, ray)
        if at is not None:
            self.load.picked(self._nearest(at))

    def _nearest(self, position: np.ndarray) -> int:
        points = self.viewport.surface_points()
        return int(np.argmin(np.linalg.norm(points - position, axis=1)))

    # --- talking

    def _say(self, text: str) -> None:
        self.timeline.say(text)

    def _clear_message(self) -> None:
        self.timeline.say("")

    def _refused(self, text: str) -> None:
        self.desk.post(lambda: self._complain(text))

    def _complain(self, text: str) -> None:
        self.timeline.say(text, warning=True)
        for client in self.server.get_clients().values():
            client.add_notification("Pliant", text, color="red", auto_close_seconds=12.0)
