"""Bad scene files: every key with every kind of wrong value, shapes, laws, and clumsy scenes."""

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile_case import BLOCK, OUT, REFUSED, TAKEN, Case, Raw, changed, toml_text

HUGE = Raw("1" + "0" * 400)
ENDLESS = Raw("9" * 5000)
DATE = datetime.date(2024, 2, 29)

NO_NUMBERS: dict[str, Any] = {
    "nan": math.nan, "inf": math.inf, "-inf": -math.inf, "1e400": Raw("1e400"), "10^400": HUGE,
    "5000 digits": ENDLESS, "1e308": 1e308, "-1e308": -1e308, "text": "much", "empty text": "",
    "true": True, "date": DATE, "list": [], "table": {}, "nested": [[[1.0]]],
}  # fmt: skip
"""Values that no number of a scene may have."""

NOT_POSITIVE = {"0": 0.0, "-1": -1.0, "5e-324": 5e-324, "-0": -0.0, "1e-300": 1e-300}
NEGATIVE = {"-1": -1.0, "-5e-324": -5e-324}

POINT = {"type": "point", "point": [1.0, 0.0, 0.0], "force": [0.0, 1.0, 0.0]}
TIP = {"type": "box", "center": [1.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}
HELD = {"region": TIP, "displacement": [0.1, 0.0, 0.0]}
MOVED = {"region": TIP, "times": [0.0, 1.0], "displacements": [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]}
PLANE = {"type": "plane", "normal": [0.0, 1.0, 0.0], "offset": -1.0}
BALL = {"type": "shape", "shape": {"type": "sphere", "radius": 0.2, "center": [0.0, -2.0, 0.0]}}

SCENE: dict[str, Any] = {
    **BLOCK,
    "gravity": [0.0, -9.81, 0.0],
    "initial_velocity": [0.0, 0.0, 0.0],
    "initial_spin": [0.0, 0.0, 0.0],
    "tolerance": 1e-8,
    "model": "corotated",
    "dilatation": "mean",
    "preconditioner": "multigrid",
    "loads": [
        {**POINT, "history": {"times": [0.0, 1.0], "factors": [1.0, 2.0]}},
        {"type": "traction", "region": TIP, "force": [0.0, 1.0, 0.0]},
        {"type": "pressure", "region": TIP, "pressure": 1.0},
        {"type": "body", "force": [0.0, 1.0, 0.0]},
    ],
    "obstacles": [PLANE, {**BALL, "spacing": 0.1}],
    "contact": {
        "stiffness": 1e4, "sharpness": 40.0, "margin": 0.0, "friction": 0.1, "slip_speed": 1e-3,
    },
    "material": {
        "youngs_modulus": 500.0, "poisson_ratio": 0.3, "density": 1.0, "mass_damping": 0.1,
        "stiffness_damping": 0.01,
    },
}  # fmt: skip
"""A scene with every kind of table."""

POSITIVE = [
    ("material", "youngs_modulus"), ("material", "density"), ("body", "spacing"),
    ("integrator", "dt"), ("contact", "stiffness"), ("contact", "sharpness"),
    ("contact", "slip_speed"), ("obstacles", 1, "spacing"), ("tolerance",),
    ("obstacles", 1, "shape", "radius"), ("shape", "size", 0), ("fixed", 0, "region", "size", 1),
]  # fmt: skip
AT_LEAST_ZERO = [
    ("material", "mass_damping"), ("material", "stiffness_damping"), ("contact", "friction"),
]  # fmt: skip
ANY = [
    ("gravity", 0), ("gravity", 2), ("initial_velocity", 1), ("initial_spin", 1),
    ("material", "poisson_ratio"), ("integrator", "theta"), ("loads", 0, "point", 0),
    ("loads", 0, "force", 1), ("loads", 0, "history", "times", 1),
    ("loads", 0, "history", "factors", 0), ("loads", 1, "force", 2), ("loads", 2, "pressure"),
    ("loads", 3, "force", 0), ("obstacles", 0, "offset"), ("obstacles", 0, "normal", 0),
    ("contact", "margin"), ("shape", "center", 1), ("fixed", 0, "region", "center", 0),
    ("obstacles", 1, "shape", "center", 2),
]  # fmt: skip
WORDS = [
    ("model",), ("dilatation",), ("preconditioner",), ("body", "kind"), ("integrator", "type"),
    ("shape", "type"), ("loads", 0, "type"), ("obstacles", 0, "type"), ("fixed", 0, "axes"),
]  # fmt: skip
TABLES = [
    ("shape",), ("body",), ("material",), ("integrator",), ("contact",), ("fixed",), ("loads",),
    ("obstacles",), ("fixed", 0), ("fixed", 0, "region"), ("loads", 0), ("loads", 0, "history"),
    ("obstacles", 0), ("obstacles", 1, "shape"),
]  # fmt: skip
VECTORS = [
    ("gravity",), ("initial_velocity",), ("initial_spin",), ("loads", 0, "point"),
    ("loads", 0, "force"), ("loads", 1, "force"), ("loads", 3, "force"), ("obstacles", 0, "normal"),
    ("shape", "size"), ("shape", "center"), ("fixed", 0, "region", "size"),
]  # fmt: skip


def scene_cases() -> Iterator[Case]:
    """All of them."""
    yield from _numbers()
    yield from _words_and_tables()
    yield from _vectors()
    yield from _shapes()
    yield from _laws()
    yield from _clumsy()
    yield from _texts()
    yield Case("scene as it is", _scene(SCENE), TAKEN)


def _scene(table: dict[str, Any], *words: str, command: str = "simulate"):
    return text_scene(toml_text(table), *words, command=command)


def text_scene(text: str | bytes, *words: str, command: str = "simulate"):
    """A command on a scene file of this text."""

    def make(folder: Path) -> list[str]:
        data = text if isinstance(text, bytes) else text.encode()
        (folder / "scene.toml").write_bytes(data)
        own = ["--out", OUT, "--no-pictures"] if command == "simulate" else []
        return [command, "scene.toml", *own, *words]

    return make


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _with(path: tuple[Any, ...], value: Any, name: str, expected: str = REFUSED) -> Case:
    return Case(f"{_place(path)} = {name}", _scene(changed(SCENE, path, value)), expected)


def _numbers() -> Iterator[Case]:
    for path in (*POSITIVE, *AT_LEAST_ZERO, *ANY):
        for name, value in NO_NUMBERS.items():
            if path[-1] == "youngs_modulus" and name == "list":
                continue  # a list with a number for every cell: too short is tried below
            yield _with(path, value, name)
    for path in POSITIVE:
        for name, value in NOT_POSITIVE.items():
            yield _with(path, value, name)
    for path in AT_LEAST_ZERO:
        for name, value in NEGATIVE.items():
            yield _with(path, value, name)
    for name, value in NO_NUMBERS.items():
        yield _with(("steps",), value, name)
        yield _with(("body", "subdivisions"), value, name)
        for key in ("youngs_modulus", "poisson_ratio", "density"):
            yield _with(("material", key), [0.1] * 15 + [value], f"a cell's {name}")
    for name, value in {"-1": -1, "1.5": 1.5, "10^20": 10**20, "2^63": Raw(str(2**63))}.items():
        yield _with(("steps",), value, name)
        yield _with(("body", "subdivisions"), value, name)
    for value in (0.5, -1.0, 0.7, -3.0):
        yield _with(("material", "poisson_ratio"), value, str(value))
    for value in (0.49, 1.01, -1.0):
        yield _with(("integrator", "theta"), value, str(value))


def _words_and_tables() -> Iterator[Case]:
    wrong = {
        "a number": 3, "nothing": "", "another word": "whatever", "a list": ["a"], "a table": {},
        "true": True, "a date": DATE, "control": "a\x1b[31mb", "long": "x" * 70_000,
    }  # fmt: skip
    for path in WORDS:
        for name, value in wrong.items():
            yield _with(path, value, name)
    for path in TABLES:
        for name, value in {"a number": 3, "a word": "box", "true": True, "a date": DATE}.items():
            yield _with(path, value, name)
    for path in (*TABLES[:5], *TABLES[8:]):
        for key in ("self", "__class__", "tpye", "", "a.b", "x" * 10_000, "\x1b]0;hi\x07"):
            yield _with((*path, key), 1.0, f"key {key[:10]!r}")
    for key in ("title", "description"):
        for name, value in {"a number": 3, "a list": [], "true": True}.items():
            yield _with((key,), value, name)
    for key in ("self", "cls", "source", "made", "materal", "kind"):
        yield _with((key,), "x", "x")


def _vectors() -> Iterator[Case]:
    wrong = {
        "empty": [], "one": [1.0], "four": [1.0] * 4, "many": [1.0] * 5000, "a word": "xyz",
        "a number": 1.0, "words": ["x", "y", "z"], "nested": [[1.0, 0.0, 0.0]] * 3,
        "tables": [{}, {}, {}],
    }  # fmt: skip
    for path in VECTORS:
        for name, value in wrong.items():
            yield _with(path, value, name)
    for path in VECTORS[3:]:  # of a body in space; velocities and gravity may lack their z
        yield _with(path, [0.5, 0.25], "flat")


SHAPES: dict[str, dict[str, Any]] = {
    "box": {"size": [1.0, 1.0, 1.0], "center": [0.0, 0.0, 0.0]},
    "capsule": {"start": [0.0, 0.0, 0.0], "end": [1.0, 0.0, 0.0], "radius": 0.3},
    "cylinder": {"radius": 0.5, "height": 1.0, "center": [0.0] * 3, "axis": [0.0, 1.0, 0.0]},
    "ellipsoid": {"radii": [1.0, 0.5, 0.5], "center": [0.0, 0.0, 0.0]},
    "sphere": {"radius": 0.5, "center": [0.0, 0.0, 0.0]},
    "torus": {"major": 1.0, "minor": 0.4, "center": [0.0] * 3, "axis": [0.0, 0.0, 1.0]},
    "scaled": {"shape": {"type": "sphere", "radius": 0.5}, "factor": 2.0},
    "rotated": {"shape": {"type": "sphere", "radius": 0.5}, "angle": 0.3, "axis": [1.0, 0.0, 0.0]},
    "translated": {"shape": {"type": "sphere", "radius": 0.5}, "offset": [0.1, 0.0, 0.0]},
    "mirrored": {"shape": {"type": "sphere", "radius": 0.5}, "normal": [1.0, 0.0, 0.0]},
    "extruded": {"shape": {"type": "circle", "radius": 0.5}, "height": 1.0},
    "revolved": {"shape": {"type": "circle", "radius": 0.3}, "offset": 1.0},
    "union": {"shapes": [{"type": "sphere", "radius": 0.5}] * 2, "blend": 0.1},
    "difference": {
        "base": {"type": "sphere", "radius": 0.5}, "cut": {"type": "sphere", "radius": 0.2},
        "blend": 0.0,
    },
}  # fmt: skip


def _shapes() -> Iterator[Case]:
    free = {k: v for k, v in BLOCK.items() if k != "fixed"}

    def case(name: str, shape: Any, expected: str = REFUSED) -> Case:
        return Case(f"shape {name}", _scene(free | {"shape": shape}), expected)

    for kind, table in SHAPES.items():
        whole = {"type": kind, **table}
        for key, value in table.items():
            if isinstance(value, float):
                for name, wrong in NO_NUMBERS.items():
                    yield case(f"{kind}.{key} = {name}", whole | {key: wrong})
            elif isinstance(value, list) and isinstance(value[0], float):
                for name, wrong in NO_NUMBERS.items():
                    if name != "nested":
                        yield case(f"{kind}.{key}[0] = {name}", whole | {key: [wrong, *value[1:]]})
                yield case(f"{kind}.{key} flat", whole | {key: value[:2]})
                yield case(f"{kind}.{key} a word", whole | {key: "abc"})
            else:
                for name, wrong in {"a number": 1.0, "a word": "x", "date": DATE, "{}": {}}.items():
                    yield case(f"{kind}.{key} = {name}", whole | {key: wrong})
        yield case(f"{kind} with a wrong key", whole | {"colour": "red"})
        needed = next(iter(table))
        yield case(f"{kind} without {needed}", {k: v for k, v in whole.items() if k != needed})
    for size in (1e19, 1e12, 1e7):  # a box 1 x 1e19 x 1 is not one of 32 cells
        yield case(f"slender box {size:g}", {"type": "box", "size": [1.0, size, 1.0]})
    deep: Any = {"type": "sphere", "radius": 1.0}
    for _ in range(100):
        deep = {"type": "translated", "shape": deep, "offset": [0.0, 0.0, 0.0]}
    yield case("nested 100 deep", deep)
    yield case("without parts", {"type": "union", "shapes": []})
    yield case("nothing left", {"type": "difference", "base": {"type": "sphere", "radius": 0.2},
                                "cut": {"type": "sphere", "radius": 0.5}})  # fmt: skip
    yield case("mixed dimensions", {"type": "union", "shapes": [
        {"type": "sphere", "radius": 0.5}, {"type": "circle", "radius": 0.5}]})  # fmt: skip


def _laws() -> Iterator[Case]:
    law = {"name": "mooney-rivlin", "c10": 120.0, "c01": 40.0, "kappa": 2000.0}
    bare = {k: v for k, v in SCENE.items() if k != "model"}

    def case(name: str, table: Any, expected: str = REFUSED) -> Case:
        return Case(f"law {name}", _scene(bare | {"law": table}), expected)

    yield case("as it is", law, TAKEN)
    for key in ("c10", "c01", "kappa"):
        for name, value in NO_NUMBERS.items():
            yield case(f"{key} = {name}", law | {key: value})
            yield case(f"{key} = [{name}]", law | {key: [value]})
    for key in ("self", "cls", "energy", "values", "c11", "__init__", "floor", "kwargs"):
        yield case(f"key {key}", law | {key: 1.0})
    for name, value in {"date": DATE, "text": "yes", "list": [], "table": {}, "nan": math.nan,
                        "10^400": HUGE, "-1": -1.0, "2": 2.0}.items():  # fmt: skip
        yield case(f"invertible = {name}", law | {"invertible": value})
    for name, value in {
        "a word": "rubber",
        "a list": ["neo-hookean"],
        "a number": 3,
        "a date": DATE,
        "nothing": "",
        "no name": {},
        "a number's name": {"name": 3},
    }.items():
        yield case(name, value)
    yield Case("law and model", _scene(bare | {"law": law, "model": "linear"}))


def _clumsy() -> Iterator[Case]:
    """What a hand gets wrong that knows what it wants."""

    def case(name: str, expected: str = REFUSED, **tables: Any) -> Case:
        return Case(f"clumsy: {name}", _scene(BLOCK | tables), expected)

    far = {**POINT, "point": [50.0, 0.0, 0.0]}
    yield case("a point load 50 m outside", loads=[far])
    yield case("a point load inside", TAKEN, loads=[{**POINT, "point": [0.9, 0.1, 0.1]}])
    yield case("a point load on the surface", TAKEN, loads=[POINT])
    yield case("a flat point in space", loads=[{**POINT, "point": [1.0, 0.0]}])
    yield case("a flat force in space", loads=[{**POINT, "force": [1.0, 0.0]}])
    yield case(
        "a flat motion in space",
        fixed=[{"region": TIP, "times": [0.0, 1.0], "displacements": [[0.0, 0.0], [1.0, 0.0]]}],
    )
    yield case("a region beside the body", fixed=[
        {"region": {"type": "sphere", "radius": 0.1, "center": [9.0, 9.0, 9.0]}}])  # fmt: skip
    yield case("a flat normal in space", obstacles=[{**PLANE, "normal": [0.0, 1.0]}])
    flat = {
        "shape": {"type": "box", "center": [0.5, 0.0], "size": [1.0, 0.5]},
        "fixed": [{"region": {"type": "box", "center": [0.0, 0.0], "size": [0.02, 0.6]}}],
        "gravity": [0.0, -9.81],
    }
    yield case("flat", TAKEN, **flat)
    yield case("a plane along z in the plane", **flat, obstacles=[
        {"type": "plane", "normal": [0.0, 0.0, 1.0], "offset": -1.0}])  # fmt: skip
    yield case("a plane across z in the plane", **flat, obstacles=[
        {"type": "plane", "normal": [0.0, 1.0, 1.0], "offset": -9.0}])  # fmt: skip
    yield case("a point in space of a flat body", **flat, loads=[
        {**POINT, "point": [1.0, 0.0, 3.0]}])  # fmt: skip
    yield case("a force across a flat body", **flat, loads=[
        {"type": "point", "point": [1.0, 0.0], "force": [0.0, 0.0, 1.0]}])  # fmt: skip
    yield case("gravity across a flat body", **(flat | {"gravity": [0.0, 0.0, -9.81]}))
    yield case("both shape and file", body={"kind": "tets", "file": "a.msh"})
    yield case("a spacing of a micrometre", body={"kind": "grid", "spacing": 1e-6})
    yield case("a spacing of a millimetre's third", body={"kind": "grid", "spacing": 3e-4})
    yield case("as many cells as there are numbers", body={"kind": "grid", "spacing": 1e-12})
    yield case("too few moduli", material={"youngs_modulus": [500.0] * 7})
    yield case("too many moduli", material={"youngs_modulus": [500.0] * 5000})
    yield case("an enormous contrast", material={"youngs_modulus": [1e-25] * 8 + [1e25] * 8})
    yield case("an empty list of moduli", material={"youngs_modulus": []})
    yield case("steps beyond all files", steps=10**9)
    yield case("no shape", shape={})
    yield case("a shape that is a file and a type", shape={"type": "sphere", "file": "a.ply"})
    for name in ("missing.ply", "", ".", "/", "/dev/null", "a\x1b[2J.ply", "x" * 5000 + ".ply"):
        yield case(f"file {name[:12]!r}", shape={"file": name})
    yield case("millions of times", fixed=[{**MOVED, "times": [float(k) for k in range(9)]}])
    yield case("times that go back", fixed=[{**MOVED, "times": [1.0, 0.0]}])
    yield case("an escape in a word", model="\x1b[31mred")
    yield case("damping of one frequency", material={"damping_frequencies": [1.0]})
    yield case("damping of 1e300 Hz", material={
        "damping_frequencies": [1e300, 2e300], "damping_ratios": [0.1, 0.1]})  # fmt: skip
    yield Case("clumsy: title as escape", _scene(BLOCK | {"title": "\x1b[2J"}), TAKEN)


def _texts() -> Iterator[Case]:
    whole = toml_text(SCENE)
    texts: dict[str, str | bytes] = {
        "dots": "a" + ".a" * 100_000 + " = 1\n",
        "dotted tables": "".join(f"[{'.'.join('ab' * 40)}.t{k}]\n" for k in range(2000)),
        "brackets": "a = " + "[" * 100_000,
        "braces": "a = " + "{a=" * 50_000,
        "table of dots": "[" + ".".join("x" * 20_000) + "]\nb = 1\n",
        "quotes": 'a = "' * 50_000, "newlines": "\n" * 1_000_000, "zeros": bytes(5000),
        "not UTF-8": b"title = '\xff\xfe'\n", "utf-16": "title = 'x'\n".encode("utf-16"),
        "mark": b"\xef\xbb\xbftitle = 'x'\n", "empty": b"", "blank": b"   ",
        "many keys": "".join(f"k{k} = 1\n" for k in range(100_000)),
        "ten megabytes": b"# " + b"x" * (10 * 2**20), "json": '{"shape": {"type": "sphere"}}',
        "a date for a shape": "shape = 1979-05-27T07:32:00Z\n",
        "hour 25": "steps = 25:00:00\n", "underscores": "steps = 1__0\n", "hex": "steps = 0xzz\n",
        "5000 hex digits": f"steps = 0x{'f' * 5000}\n", "5000 bits": f"steps = 0b{'1' * 5000}\n",
        "digits in a float": f"gravity = [{'9' * 5000}.0, 0.0, 0.0]\n",
        "exponent": "gravity = [1e99999999999, 0.0, 0.0]\n",
    }  # fmt: skip
    for name, text in texts.items():
        yield Case(f"text: {name}", text_scene(text))
    for k in range(1, 40):  # cut anywhere: TOML is refused, or the scene lacks something, or not
        cut = whole[: len(whole) * k // 40]
        if cut.rstrip().endswith(("=", ",", "[", '"')) or cut.count("[") != cut.count("]"):
            yield Case(f"text: cut at {k}/40", text_scene(cut))
