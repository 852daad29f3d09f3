"""Bad folders: runs and fits whose files were edited, cut off or exchanged; bad fit files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile_case import OUT, TAKEN, WARNED, Case, Raw, changed, toml_text
from hostile_fields import header
from hostile_meshes import no_files
from hostile_templates import (
    JSON_VALUES,
    TEXTS,
    bent_arrays,
    copied,
    edited,
    json_text,
    templates,
)


def folder_cases() -> Iterator[Case]:
    """All of them."""
    yield from _states()
    yield from _run_results()
    yield from _fits()
    yield from _histories()
    yield from _fit_files()


# --- runs


def _states() -> Iterator[Case]:
    shape = (45, 3)  # of the block's nodes
    wrong: dict[str, dict[str, Any]] = {
        "step": {"float": np.array(2.5), "negative": np.array(-1), "a list": np.arange(3),
                 "a word": np.array("x"), "an object": np.array(None), "huge": np.array(2**60)},
        "t": {"nan": np.array(np.nan), "a list": np.zeros(3), "a word": np.array("x")},
        "displacement": {}, "velocity": {}, "acceleration": {},
        "work": {"flat": np.zeros(3), "narrow": np.zeros((1, 2)), "nan": np.full((1, 13), np.nan),
                 "words": np.full((1, 13), "x")},
    }  # fmt: skip
    for key in ("displacement", "velocity", "acceleration"):
        wrong[key] = {
            "float32": np.zeros(shape, np.float32), "whole": np.zeros(shape, int),
            "complex": np.zeros(shape, complex), "words": np.full(shape, "x"),
            "objects": np.full(shape, None), "nan": np.full(shape, np.nan),
            "inf": np.full(shape, np.inf), "flat": np.zeros((45, 2)), "short": np.zeros((44, 3)),
            "a line": np.zeros(135), "a number": np.array(1.0), "empty": np.zeros((0, 3)),
            "huge": header((10**12, 3)) + bytes(80), "negative": header((-1, 3)) + bytes(80),
            "cut": header(shape) + bytes(80), "five axes": np.zeros((1,) * 5),
        }  # fmt: skip
    commands = {
        "export": lambda: ["export", "run", "--out", "a.glb"],
        "resume": lambda: ["simulate", "run/scene.toml", "--out", "run", "--steps", "4",
                           "--no-pictures"],
    }  # fmt: skip

    def case(title: str, command: str, spoil: Callable[[Path], None]) -> Case:
        def make(folder: Path) -> list[str]:
            place = copied("run", folder)
            spoil(place / "trajectory" / "state_000003.npz")
            return commands[command]()

        return Case(f"{command} of a run, {title}", make)

    for command in commands:
        for key, values in wrong.items():
            for name, value in values.items():
                yield case(f"{key}: {name}", command,
                           lambda p, k=key, v=value: bent_arrays(p, {k: v}))  # fmt: skip
            yield case(f"without {key}", command, lambda p, k=key: bent_arrays(p, {}, without=k))
        for k in range(1, 12):
            yield case(f"a state cut at {k}/12", command, lambda p, k=k: p.write_bytes(
                p.read_bytes()[: p.stat().st_size * k // 12]))  # fmt: skip
        for kind in ("a folder", "empty", "a pipe", "endless"):

            def exchange(path: Path, kind=kind) -> None:
                path.unlink()
                no_files(path)[kind]()

            yield case(f"a state is {kind}", command, exchange)
        for name in ("checkpoint.npz", "anchor.npz"):
            if command == "resume" and name == "checkpoint.npz":
                for title, data in {"text": b"hello", "zeros": bytes(999)}.items():
                    yield case(f"{name} {title}", command, lambda p, n=name, d=data: (
                        p.parents[1] / n).write_bytes(d) and None)  # fmt: skip


def _run_results() -> Iterator[Case]:
    def resumed(made: Callable[[Path], Path]):
        def make(folder: Path) -> list[str]:
            made(folder)
            return ["simulate", "run/scene.toml", "--out", "run", "--steps", "4", "--no-pictures"]

        return make

    for name, data in TEXTS.items():
        yield Case(f"run: result.json {name}", resumed(edited("run", "result.json", data)))
        yield Case(f"run: scene.toml {name}", resumed(edited("run", "scene.toml", data)))
    for key in ("status", "files_digest"):
        for name, value in JSON_VALUES.items():
            put = lambda old, k=key, v=value: old | {k: v}  # noqa: E731
            yield Case(f"run: {key} = {name}", resumed(edited("run", "result.json", put)))
    for kind in ("a folder", "a pipe", "endless"):

        def exchange(folder: Path, kind=kind) -> list[str]:
            place = copied("run", folder)
            (place / "result.json").unlink()
            no_files(place / "result.json")[kind]()
            return ["simulate", str(templates() / "scene.toml"), "--out", "run", "--no-pictures"]

        yield Case(f"run: result.json is {kind}", exchange)


# --- fits


def _fits() -> Iterator[Case]:
    def opened(made: Callable[[Path], Path]):
        def make(folder: Path):
            from pliant.app.editor.opening import open_target

            place = made(folder)
            return lambda: open_target(str(place))

        return make

    def again(made: Callable[[Path], Path]):
        def make(folder: Path) -> list[str]:
            made(folder)
            return [
                "reconstruct",
                "fit",
                "--out",
                "fit",
                "--observations",
                str(templates() / "npz"),
                "--unknown",
                "youngs_modulus=550",
                "--unknown",
                "poisson_ratio=0.32",
            ]

        return make

    yield Case("fit as it is, opened", opened(lambda f: copied("fit", f)), TAKEN)
    yield Case("fit as it is, again", again(lambda f: copied("fit", f)), TAKEN)
    for use, run in (("opened", opened), ("again", again)):
        for name, data in TEXTS.items():
            yield Case(f"fit {use}: fit.json {name}", run(edited("fit", "fit.json", data)))
            if use == "opened":  # again: what is no finished fit is gone on with
                yield Case(
                    f"fit {use}: result.json {name}", run(edited("fit", "result.json", data))
                )
        for path in (("unknowns",), ("unknowns", "youngs_modulus")):
            for name, value in JSON_VALUES.items():
                if name == "list" and len(path) == 2:
                    continue
                put = lambda old, p=path, v=value: changed(old, p, v)  # noqa: E731
                where = ".".join(path)
                yield Case(f"fit {use}: fit.json {where} = {name}",
                           run(edited("fit", "fit.json", put)))  # fmt: skip
        keys = [
            ("unknowns",),
            ("unknowns", "youngs_modulus"),
            ("advice",),
            ("advice", 0),
            ("unknowns", "youngs_modulus", "value"),
            ("unknowns", "youngs_modulus", "sigma"),
        ]
        if use == "again":
            keys += [("converged",), ("iterations",), ("seconds",), ("rms",), ("noise",)]
        for path in keys:
            for name, value in JSON_VALUES.items():
                fine = {"value", "sigma", "rms", "noise"} & set(map(str, path))
                if (name == "null" and fine) or (name == "true" and path == ("converged",)):
                    continue  # not known
                if path in (("unknowns",), ("advice",)) and name in ("table", "list"):
                    continue
                if path == ("advice", 0) and name == "text":
                    continue
                put = lambda old, p=path, v=value: changed(old, p, v)  # noqa: E731
                where = ".".join(map(str, path))
                yield Case(f"fit {use}: result.json {where} = {name}",
                           run(edited("fit", "result.json", put)))  # fmt: skip
        for key in ("unknowns", "advice"):
            put = lambda old, k=key: {n: v for n, v in old.items() if n != k}  # noqa: E731
            yield Case(f"fit {use}: result.json without {key}",
                       run(edited("fit", "result.json", put)))  # fmt: skip

    def told(data: bytes):
        def make(folder: Path) -> list[str]:
            place = copied("npz", folder)
            (place / "truth.json").write_bytes(data)
            return ["reconstruct", str(templates() / "scene.toml"), "--observations", "npz",
                    "--out", OUT, "--unknown", "youngs_modulus=550", "--no-report"]  # fmt: skip

        return make

    for name, data in TEXTS.items():
        yield Case(f"truth.json {name}", told(data))
    for name, value in JSON_VALUES.items():
        if name != "list":
            yield Case(f"truth = {name}", told(json_text({"youngs_modulus": value})))


def _histories() -> Iterator[Case]:
    """Lines that are damaged are left out with a word, as a crash leaves the last one."""
    line = {"iteration": 0, "horizon": 3, "cost": 1.0, "rms": 0.1, "seconds": 0.1,
            "values": {"youngs_modulus": 550.0}}  # fmt: skip

    def case(title: str, data: bytes) -> Case:
        def make(folder: Path):
            from pliant.app.fitted.fit_directory import FitDirectory

            place = copied("fit", folder)
            (place / "history.jsonl").write_bytes(data)
            return FitDirectory(place).history

        return Case(f"history: {title}", make, WARNED)

    for key in line:
        for name, value in JSON_VALUES.items():
            if key == "values" and name == "table":
                continue
            yield case(f"{key} = {name}", json_text(line | {key: value}))
        yield case(f"without {key}", json_text({k: v for k, v in line.items() if k != key}))
    for name, data in TEXTS.items():
        if data and len(data) < 10**6:
            yield case(name, data)


FIT_FILE = {
    "unknowns": {"youngs_modulus": 550.0, "poisson_ratio": 0.32},
    "priors": {"youngs_modulus": "500+-50"},
    "bounds": {"poisson_ratio": [0.2, 0.45]},
    "fit": {"optimiser": "lm", "multi_start": 1, "max_iterations": 3, "memory_limit_mb": 100.0,
            "coarse_to_fine": False, "discretisation": False, "field_parts": False},
}  # fmt: skip


def _fit_files() -> Iterator[Case]:
    import math

    def case(title: str, content: Any) -> Case:
        def make(folder: Path) -> list[str]:
            path = folder / "fit.toml"
            if callable(content):
                content(path)
            else:
                path.write_bytes(
                    content if isinstance(content, bytes) else toml_text(content).encode()
                )
            return ["reconstruct", str(templates() / "scene.toml"), "--observations",
                    str(templates() / "npz"), "--fit-file", "fit.toml", "--out", OUT]  # fmt: skip

        return Case(f"fit file: {title}", make)

    wrong: dict[str, Any] = {
        "nan": math.nan, "inf": math.inf, "-inf": -math.inf, "10^400": Raw("1" + "0" * 400),
        "5000 digits": Raw("9" * 5000), "1e308": 1e308, "text": "much", "true": True,
        "table": {}, "nested": [[1.0]], "empty": [],
    }  # fmt: skip
    for table, keys in FIT_FILE.items():
        for name, value in {"a number": 3, "a list": [], "a word": "x", "true": True}.items():
            yield case(f"{table} = {name}", FIT_FILE | {table: value})
        yield case(f"{table}.self", changed(FIT_FILE, (table, "self"), 1.0))
        for key in keys:
            for name, value in wrong.items():
                if isinstance(keys[key], bool) and name == "true":
                    continue
                yield case(f"{table}.{key} = {name}", changed(FIT_FILE, (table, key), value))
    for key, values in {
        "max_iterations": (-1, 0, 1.5, 10**18),
        "multi_start": (-1, 0, 10**9),
        "optimiser": ("sgd", ""),
        "memory_limit_mb": (0.0, -1.0, 5e-324),
        "field": ("what", ""),
        "field_weight": (-1.0, 0.0),
    }.items():
        for value in values:
            yield case(f"fit.{key} = {value}", changed(FIT_FILE, ("fit", key), value))
    for text in (
        "",
        "x",
        "1+-",
        "1+-0",
        "1+--1",
        "nan+-1",
        "1+-inf",
        "1*/0.5",
        "1*/nan",
        "+-",
        "1e308+-1",
        "-5*/2",
        "1+-1e-320",
    ):
        yield case(f"prior {text!r}", changed(FIT_FILE, ("priors", "youngs_modulus"), text))
    for ends in ([0.4, 0.2], [0.3, 0.3], [0.0], [0.1, 0.2, 0.3], ["a", "b"], [math.nan, 0.4],
                 [0.0, math.inf], [0.4, 0.45]):  # fmt: skip
        yield case(f"bounds {ends}", changed(FIT_FILE, ("bounds", "poisson_ratio"), ends))
    for value in (-1.0, 0.0, 5e-324, [1.0, 2.0]):
        yield case(f"start {value}", changed(FIT_FILE, ("unknowns", "youngs_modulus"), value))
    yield case("an unknown of nothing", changed(FIT_FILE, ("unknowns", "colour"), 1.0))
    yield case("a prior of nothing", changed(FIT_FILE, ("priors", "colour"), "1+-1"))
    yield case("bounds of nothing", changed(FIT_FILE, ("bounds", "colour"), [1.0, 2.0]))
    for name, data in {"no TOML": b"[fit", "zeros": bytes(99), "not UTF-8": b"a='\xff'",
                       "dots": b"a" + b".a" * 100_000 + b" = 1\n", "deep": b"a = " + b"[" * 10_000,
                       "20 MB": b"#" + b"x" * (20 * 2**20)}.items():  # fmt: skip
        yield case(name, data)
    for kind in no_files(Path()):
        if kind != "empty":  # nothing is asked then, as without a file
            yield case(f"is {kind}", lambda path, kind=kind: no_files(path)[kind]())
