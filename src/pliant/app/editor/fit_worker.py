"""A fit in a process of its own: films the scene if there is no recording, fits, tells how it goes.

Answers: ("seen", Observations), ("progress", share), ("step", Step), ("done", dict of the fit),
("failed", sentence).
"""

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pliant.app.describing.scene_files import build_scene
from pliant.app.folders.films import Film, steps_of
from pliant.core.errors import PliantError
from pliant.dynamics.simulate import simulate
from pliant.fem.bodies.body import Body
from pliant.inverse.fitting.fit import Step
from pliant.inverse.fitting.reconstruct import reconstruct
from pliant.observe.files import load_observations

FILM = Film(cameras=6, pixels=64, noise="0.25voxel")
"""Of a scene that is filmed for a fit: enough to recover its values in a minute."""


def fit(
    connection: Connection,
    description: dict[str, Any],
    body: Body,
    folder: str | None,
    starts: dict[str, float],
    device: str,
    threads: int | None,
) -> None:
    """Recover `starts` (name: value) from the recording in `folder`; None: film the scene."""
    from pliant.app.terminal.console import set_machine

    set_machine(device, threads)
    try:
        scene = build_scene(description, make_body=lambda *_: body)
        if folder is None:
            steps = steps_of(scene, None)
            run = simulate(
                scene, steps,
                progress=lambda step: connection.send(("progress", 0.2 * step / steps)),
            )  # fmt: skip
            seen = FILM.take(run)
        else:
            seen = load_observations(Path(folder), scene=scene)
        connection.send(("seen", seen))

        def on_step(step: Step) -> None:
            connection.send(("step", step))

        found = reconstruct(scene, seen, starts, on_step=on_step)
        answer = {
            "labels": found.labels, "start": found.start, "values": found.values,
            "sigma": found.sigma, "advice": found.advice, "rms": found.rms,
            "seconds": found.seconds, "converged": found.converged,
        }  # fmt: skip
        connection.send(("done", answer))
    except PliantError as error:
        connection.send(("failed", str(error)))
    except (EOFError, OSError):
        raise
    except Exception as error:  # a mistake of ours must show in the page
        connection.send(("failed", f"{type(error).__name__}: {error}"))
