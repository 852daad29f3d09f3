"""One file per frame in a folder: OBJ, PLY, VTU."""

from collections.abc import Callable
from pathlib import Path

from pliant.app.folders.export import write_frame, write_index
from pliant.app.formats.surface_motion import SurfaceMotion
from pliant.core.errors import BadInput
from pliant.core.files import whole_file, write_json
from pliant.dynamics.trajectory import Trajectory
from pliant.geometry.mesh_files import save_mesh

TIMES = "times.json"


def write_sequence(
    folder: str | Path,
    motion: SurfaceMotion,
    suffix: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """surface_000012.obj (.ply) for each frame, and times.json with the time [s] of each file."""
    folder = _made(folder)
    written, times = [], {}
    for k, time in enumerate(motion.times):
        path = folder / f"surface_{int(motion.steps[k]):06d}{suffix}"
        with whole_file(path) as temporary:
            save_mesh(temporary, motion.positions(k), motion.mesh.triangles)
        written.append(path)
        times[path.name] = float(time)
        if progress is not None:
            progress(k + 1)
    write_json(folder / TIMES, times)
    return [*written, folder / TIMES]


def write_vtu_sequence(
    folder: str | Path,
    run: Trajectory,
    *,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """frame_000012.vtu for every K-th frame and the last, and trajectory.pvd to open them all."""
    folder = _made(folder)
    count = len(run.times)
    chosen = sorted({*range(0, count, every), count - 1})
    written, entries = [], []
    stress = run.scene.stress()
    for done, k in enumerate(chosen):
        path = folder / f"frame_{k:06d}.vtu"
        u, v = run.displacements[k], run.velocities[k]
        stresses = None if stress is None else stress.at(u).von_mises
        write_frame(path, run.scene.body, u, v, stress=stresses)
        written.append(path)
        entries.append((float(run.times[k]), path.name))
        if progress is not None:
            progress(done + 1)
    write_index(folder / "trajectory.pvd", entries)
    return [*written, folder / "trajectory.pvd"]


def _made(folder: str | Path) -> Path:
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made ({error.strerror}).") from error
    return folder
