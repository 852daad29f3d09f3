"""One file per frame in a folder: OBJ, PLY, VTU, legacy VTK, displacement fields as NRRD."""

from collections.abc import Callable
from pathlib import Path

from pliant.app.folders.export import FrameWriter, write_index
from pliant.app.formats.displacement_field import DisplacementLattice
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


def write_cell_sequence(
    folder: str | Path,
    run: Trajectory,
    suffix: str = ".vtu",
    *,
    every: int = 1,
    scale: float = 1.0,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """frame_000012.vtu (.vtk) for every K-th frame and the last.

    With trajectory.pvd, which opens all .vtu files in ParaView, or times.json. scale: of lengths.
    """
    writer = FrameWriter(run.scene)

    def write(path: Path, k: int) -> None:
        writer.write(path, run.displacements[k], run.velocities[k], scale=scale)

    written, entries = _frames(
        _made(folder), run, every, f"frame_{{:06d}}{suffix}", write, progress
    )
    index = Path(folder) / ("trajectory.pvd" if suffix == ".vtu" else TIMES)
    if suffix == ".vtu":
        write_index(index, entries)
    else:
        write_json(index, {name: time for time, name in entries})
    return [*written, index]


def write_displacement_fields(
    folder: str | Path,
    run: Trajectory,
    *,
    every: int = 1,
    scale: float = 1.0,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """displacement_000012.nrrd for every K-th frame and the last, and times.json."""
    lattice = DisplacementLattice(run.scene.body, scale=scale)

    def write(path: Path, k: int) -> None:
        lattice.write(path, run.displacements[k])

    written, entries = _frames(
        _made(folder), run, every, "displacement_{:06d}.nrrd", write, progress
    )
    write_json(Path(folder) / TIMES, {name: time for time, name in entries})
    return [*written, Path(folder) / TIMES]


def _frames(
    folder: Path,
    run: Trajectory,
    every: int,
    name: str,
    write: Callable[[Path, int], None],
    progress: Callable[[int], None] | None,
) -> tuple[list[Path], list[tuple[float, str]]]:
    """Write the chosen frames; their paths, and time and name of each."""
    count = len(run.times)
    written, entries = [], []
    for done, k in enumerate(sorted({*range(0, count, every), count - 1})):
        path = folder / name.format(k)
        write(path, k)
        written.append(path)
        entries.append((float(run.times[k]), path.name))
        if progress is not None:
            progress(done + 1)
    return written, entries


def _made(folder: str | Path) -> Path:
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made ({error.strerror}).") from error
    return folder
