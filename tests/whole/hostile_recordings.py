"""Bad recordings: of depth cameras, and of a test machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile_case import BLOCK, OUT, REFUSED, TAKEN, WARNED, Case, changed
from hostile_fields import header
from hostile_meshes import no_files
from hostile_templates import JSON_VALUES, TEXTS, bent_arrays, copied, edited


def recording_cases() -> Iterator[Case]:
    """All of them."""
    yield from _recordings()
    yield from _depth_images()
    yield from _curves()


def reading(made: Callable[[Path], Path], **options: Any):
    """A recording read alone."""

    def make(folder: Path):
        from pliant.observe.files import load_observations

        place = made(folder)
        return lambda: load_observations(place, **options)

    return make


def _recordings() -> Iterator[Case]:
    record = "observations.json"
    for layout in ("npz", "ply", "depth"):
        yield Case(f"{layout} as it is", reading(lambda f, x=layout: copied(x, f)), TAKEN)
        for name, data in TEXTS.items():
            yield Case(f"{layout}: {record} {name}", reading(edited(layout, record, data)))
        for key in ("times", "units", "layout", "noise"):
            for name, value in JSON_VALUES.items():
                if name == "null":
                    continue  # as if it was not there
                put = lambda old, k=key, v=value: old | {k: v}  # noqa: E731
                yield Case(f"{layout}: {key} = {name}", reading(edited(layout, record, put)))
        for name, value in JSON_VALUES.items():
            put = lambda old, v=value: changed(old, ("times", 1), v)  # noqa: E731
            yield Case(f"{layout}: a time = {name}", reading(edited(layout, record, put)))
        suffix = "png" if layout == "depth" else layout
        for k in range(1, 24):

            def cut(folder: Path, k=k, layout=layout, suffix=suffix) -> Path:
                place = copied(layout, folder)
                path = sorted(place.rglob(f"*.{suffix}"))[1]
                data = path.read_bytes()
                path.write_bytes(data[: len(data) * k // 24])
                return place

            yield Case(f"{layout}: a frame cut at {k}/24", reading(cut))
        for kind in no_files(Path()):
            if kind in ("missing", "a link to nothing", "a loop"):
                continue  # of the frames that are there, each has its time; tried below

            def other(folder: Path, kind=kind, layout=layout, suffix=suffix) -> Path:
                place = copied(layout, folder)
                path = sorted(place.rglob(f"*.{suffix}"))[1]
                path.unlink()
                no_files(path)[kind]()
                return place

            yield Case(f"{layout}: a frame is {kind}", reading(other))

        def fewer(folder: Path, layout=layout, suffix=suffix) -> Path:
            place = copied(layout, folder)
            for path in sorted(place.rglob(f"*.{suffix}"))[:1]:
                path.unlink()
            return place

        expected = WARNED if layout == "depth" else REFUSED
        yield Case(f"{layout}: a frame is missing", reading(fewer), expected)
    camera = ("cameras", 0)
    for key in ("width", "height", "intrinsic_matrix"):
        for name, value in JSON_VALUES.items():
            put = lambda old, k=key, v=value: changed(old, (*camera, "intrinsic", k), v)  # noqa: E731
            yield Case(f"camera {key} = {name}", reading(edited("npz", record, put)))
    for key in ("intrinsic", "extrinsic"):
        for name, value in JSON_VALUES.items():
            put = lambda old, k=key, v=value: changed(old, (*camera, k), v)  # noqa: E731
            yield Case(f"camera {key} = {name}", reading(edited("npz", record, put)))
    for name, value in JSON_VALUES.items():
        put = lambda old, v=value: changed(old, (*camera, "extrinsic", 3), v)  # noqa: E731
        yield Case(f"a pose's number = {name}", reading(edited("npz", record, put)))
    yield from _arrays_of_frames()
    for rate in (0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf")):
        yield Case(f"frame rate {rate}", reading(lambda f: copied("npz", f), frame_rate=rate))
    for units in ("", "furlong", "M", "mm "):
        yield Case(f"units {units!r}", reading(lambda f: copied("npz", f), units=units))
    yield from _units()


def _units() -> Iterator[Case]:
    """Points a thousand times too small or too large for the body are noticed."""
    from pliant.app.describing.scene_files import build_scene

    for units, expected in (("m", TAKEN), ("mm", WARNED)):

        def make(folder: Path, units=units):
            from pliant.observe.files import load_observations

            place = copied("npz", folder)
            return lambda: load_observations(place, units=units, scene=build_scene(BLOCK))

        yield Case(f"points in {units}", make, expected)

    def thousandfold(folder: Path):
        from pliant.observe.files import load_observations

        place = copied("npz", folder)
        for path in place.glob("*.npz"):
            with np.load(path) as found:
                arrays = dict(found)
            np.savez(path, **arrays | {"points": 1000.0 * arrays["points"]})
        return lambda: load_observations(place, units="m", scene=build_scene(BLOCK))

    yield Case("points in mm called m", thousandfold, WARNED)


def _arrays_of_frames() -> Iterator[Case]:
    wrong: dict[str, dict[str, Any]] = {
        "points": {"flat": np.zeros((5, 2)), "a line": np.zeros(5), "words": np.full((5, 3), "x"),
                   "objects": np.full((5, 3), None), "nan": np.full((5, 3), np.nan),
                   "inf": np.full((5, 3), np.inf), "complex": np.zeros((5, 3), complex),
                   "huge": header((10**12, 3)) + bytes(80), "negative": header((-5, 3)) + bytes(80),
                   "1e308": np.full((5, 3), 1e308)},
        "camera": {"short": np.zeros(2, int), "words": np.full(5, "x"), "floats": np.zeros(5),
                   "far": np.full(5, -(2**40))},
        "pixel": {"short": np.zeros(2, int), "floats": np.full(5, 0.5), "words": np.full(5, "x")},
        "depth": {"short": np.zeros(2), "words": np.full(5, "x")},
    }  # fmt: skip
    for key, values in wrong.items():
        for name, value in values.items():
            if name == "far":
                continue  # no camera: points without one are taken

            def bent(folder: Path, key=key, value=value) -> Path:
                place = copied("npz", folder)
                bent_arrays(place / "frame_0001.npz", {key: value})
                return place

            yield Case(f"frame's {key}: {name}", reading(bent))

    def no_points(folder: Path) -> Path:
        place = copied("npz", folder)
        bent_arrays(place / "frame_0001.npz", {}, without="points")
        return place

    yield Case("frame without points", reading(no_points))


def _depth_images() -> Iterator[Case]:
    for name, data in TEXTS.items():
        yield Case(f"trajectory.json {name}", reading(edited("depth", "trajectory.json", data)))

        def alone(folder: Path, data=data) -> Path:
            place = edited("depth", "intrinsic.json", data)(folder)
            (place / "trajectory.json").unlink()
            return place

        yield Case(f"intrinsic.json {name}", reading(alone))
    for key in ("width", "height", "intrinsic_matrix"):
        for name, value in JSON_VALUES.items():
            paths = (("parameters", 0, "intrinsic", key),)
            for path in paths:
                put = lambda old, p=path, v=value: changed(old, p, v)  # noqa: E731
                yield Case(
                    f"trajectory {key} = {name}", reading(edited("depth", "trajectory.json", put))
                )
    for name, value in JSON_VALUES.items():
        put = lambda old, v=value: changed(old, ("parameters", 0, "extrinsic"), v)  # noqa: E731
        yield Case(f"extrinsic = {name}", reading(edited("depth", "trajectory.json", put)))
        put = lambda old, v=value: old | {"depth_scale": v}  # noqa: E731
        if name != "null":  # taken as millimetres, which is said
            yield Case(f"depth_scale = {name}", reading(edited("depth", "observations.json", put)))
    for scale in (0.0, -1.0, 1e-300, 1e300):
        put = lambda old, v=scale: old | {"depth_scale": v}  # noqa: E731
        yield Case(f"depth_scale = {scale}", reading(edited("depth", "observations.json", put)))
    for text in ("", "0 0 0\n1 2\n", "0 0 0\n" + "1 0 0 0\n" * 4, "0 0 1\n" + "nan 0 0 0\n" * 4,
                 "x\n" * 5, "0 0 0\n" * 10_000):  # fmt: skip

        def logged(folder: Path, text=text) -> Path:
            place = copied("depth", folder)
            (place / "trajectory.json").unlink()
            (place / "trajectory.log").write_text(text)
            return place

        yield Case(f"trajectory.log {text[:12]!r} of {len(text)}", reading(logged))


def _curves() -> Iterator[Case]:
    rows = "".join(f"{1 + 0.1 * k:.2f},{0.1 * k:.3f}\n" for k in range(1, 12))

    def case(title: str, data: Any, *words: str) -> Case:
        def make(folder: Path) -> list[str]:
            path = folder / "UT.csv"
            if callable(data):
                data(path)
            else:
                path.write_bytes(data if isinstance(data, bytes) else data.encode())
            units = [] if "--units" in words else ["--units", "MPa"]
            return [
                "fit-curve",
                "UT.csv",
                "--materials",
                "neo-hookean",
                "--out",
                OUT,
                *units,
                *words,
            ]

        return Case(f"curve: {title}", make)

    for bad in ("nan", "inf", "1e400", "x", "", "1e308", "-1"):
        yield case(f"a stretch {bad!r}", rows + f"{bad},1.0\n")
    for bad in ("nan", "inf", "1e400", "x", "", "1e308"):
        yield case(f"a stress {bad!r}", rows + f"3.0,{bad}\n")
    for name, data in {
        "empty": b"",
        "zeros": bytes(999),
        "one row": b"1.1,0.1\n",
        "one column": b"1\n2\n3\n",
        "ragged": b"1.1,0.1\n1.2\n",
        "text": b"hello\n" * 9,
        "not UTF-8": b"\xff\xfe1.1,0.1\n",
        "nothing stretched": b"1,0\n1,0\n",
        "no stress": b"1.1,0\n1.2,0\n",
        "compressed to nothing": b"0,1\n0.5,-1\n",
    }.items():
        yield case(name, data)
    for kind in no_files(Path()):
        yield case(f"is {kind}", lambda path, kind=kind: no_files(path)[kind]())
    for words in (
        ("--units", "furlong"),
        ("--loading", "torsion"),
        ("--columns", "x,y"),
        ("--error", "-1%"),
        ("--error", "nan"),
        ("--error", "1e400kPa"),
        ("--error", "much"),
        ("--poisson-ratio", "0.5"),
        ("--poisson-ratio", "nan"),
        ("--poisson-ratio", "1e400"),
        ("--materials", "jelly"),
        ("--materials", ""),
        ("--columns", "stress,stress"),
        ("--error", "0%"),
        ("--loading", "uniaxial,uniaxial"),
    ):
        yield case(" ".join(words), rows, *words)
