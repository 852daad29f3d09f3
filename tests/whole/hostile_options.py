"""Bad words on the command line: every option of every command with every kind of wrong value."""

from collections.abc import Iterator
from pathlib import Path

from hostile_case import BLOCK, OUT, REFUSED, TAKEN, Case, toml_text
from hostile_meshes import no_files
from hostile_templates import copied, templates

NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "1e308", "x", "", "1,5", "0x10", "9" * 5000, "1e-320")
NO_COUNTS = ("-1", "1.5", "nan", "x", "", "1e3", "9" * 5000, "9" * 25, "0b1")

NUMBERS: dict[str, tuple[str, ...]] = {
    "simulate": ("--spacing",),
    "static": ("--spacing", "--tolerance", "--seconds"),
    "modes": ("--spacing",),
    "observe": ("--outliers", "--dropped", "--quantisation", "--spacing", "--noise"),
    "reconstruct": (
        "--frame-rate", "--crop", "--field-weight", "--memory-limit", "--outliers", "--noise",
    ),
    "landscape": ("--span", "--noise"),
    "check-gradients": ("--noise",),
    "render": ("--slice-at", "--time", "--seconds", "--azimuth", "--elevation"),
    "scan": ("--spacing",),
    "compress": ("--error", "--spacing", "--frame-rate"),
    "texture": ("--spacing", "--frame-rate"),
}  # fmt: skip
COUNTS: dict[str, tuple[str, ...]] = {
    "simulate": ("--steps", "--every", "--cells-across", "--threads"),
    "static": ("--cells-across", "--threads", "--iterations"),
    "modes": ("--count", "--cells-across", "--threads"),
    "observe": ("--cameras", "--pixels", "--seed", "--steps", "--cells-across"),
    "reconstruct": ("--cameras", "--pixels", "--seed", "--steps", "--multi-start",
                    "--max-iterations", "--cells-across", "--threads"),
    "landscape": ("--points", "--cameras", "--pixels", "--seed"),
    "check-gradients": ("--steps", "--cameras", "--pixels"),
    "bench": ("--resolution", "--steps"),
    "view": ("--port",),
    "render": ("--width", "--height", "--samples", "--steps"),
    "export": ("--every", "--steps"),
}  # fmt: skip
WORDS: dict[str, tuple[str, ...]] = {
    "observe": ("--layout", "--kind"),
    "reconstruct": (
        "--cost", "--loss", "--optimiser", "--field", "--units", "--materials", "--unknown",
        "--prior", "--bound", "--observations", "--fit-file", "--kind",
    ),
    "render": ("--style", "--colour", "--slice-axis"),
    "export": ("--format",),
    "landscape": ("--cost", "--fit"),
    "check-gradients": ("--cost", "--unknown"),
    "bench": ("--law",),
    "scan": ("--table", "--units"),
    "compress": ("--observations", "--units"),
    "texture": ("--observations", "--units"),
}  # fmt: skip
ENOUGH = {"--steps": "1", "--cameras": "2", "--pixels": "16", "--points": "3"}
"""So that a value which is taken after all does not take long."""


def option_cases() -> Iterator[Case]:
    """All of them."""
    for command, options in NUMBERS.items():
        for option in options:
            for value in NO_NUMBERS:
                yield _case(command, option, value)
    for command, options in COUNTS.items():
        for option in options:
            for value in NO_COUNTS:
                yield _case(command, option, value)
    for command, options in WORDS.items():
        for option in options:
            for value in ("", "whatever", "\x1b[31mred", "x" * 3000, "a,b,,c", "=", "../.."):
                yield _case(command, option, value)
    yield from _places()
    yield from _others()


def words_of(command: str) -> list[str]:
    """A command that works, in a folder with the scene and the run."""
    subject = {"scan": "depth", "render": "run", "export": "run", "bench": "cuboid"}
    words = [command, subject.get(command, "scene.toml")]
    out = {"render": "a.png", "export": "a.glb", "scan": "a.npz", "compress": "a.npz",
           "texture": "a.glb"}  # fmt: skip
    if command in ("simulate", "static", "modes", "observe", "reconstruct", "landscape", *out):
        words += ["--out", out.get(command, OUT)]
    if command == "simulate":
        words.append("--no-pictures")
    if command == "view":
        words.append("--no-browser")
    if command in ("observe", "landscape", "check-gradients"):
        for option in ("--cameras", "--pixels", "--steps"):
            words += [option, ENOUGH[option]]
    if command in ("reconstruct", "compress", "texture"):
        words += ["--observations", str(templates() / "npz")]
    return words


def _case(command: str, option: str, value: str) -> Case:
    def make(folder: Path) -> list[str]:
        (folder / "scene.toml").write_text(toml_text(BLOCK))
        if command in ("render", "export"):
            copied("run", folder)
        if command == "scan":
            copied("depth", folder)
        words = words_of(command)
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
        return [*words, f"{option}={value}"]

    return Case(f"{command} {option}={value[:12]!r}{len(value)}", make)


def _places() -> Iterator[Case]:
    """Scenes, folders and files that are something else."""
    for command in ("simulate", "static", "modes", "observe", "reconstruct", "render", "export"):
        for kind in no_files(Path()):

            def scene(folder: Path, command=command, kind=kind) -> list[str]:
                no_files(folder / "scene.toml")[kind]()
                return [w if w != "run" else "scene.toml" for w in words_of(command)]

            yield Case(f"{command} a scene that is {kind}", scene)
        for name in ("", " ", ".", "/", "\x1b[31m", "a\nb", "x" * 5000, "-", "tours", "\udc80"):

            def named(folder: Path, command=command, name=name) -> list[str]:
                words = words_of(command)
                return [words[0], name, *words[2:]]

            yield Case(f"{command} the scene {name[:9]!r}", named)
        if command in ("simulate", "reconstruct", "observe", "render", "export"):
            for kind in ("a pipe", "empty", "endless", "a loop", "a link to nothing"):

                def out(folder: Path, command=command, kind=kind) -> list[str]:
                    (folder / "scene.toml").write_text(toml_text(BLOCK))
                    words = words_of(command)
                    if command in ("render", "export"):
                        copied("run", folder)
                    place = words[words.index("--out") + 1]
                    no_files(folder / place)[kind]()
                    return words

                loose = kind in ("a link to nothing", "a loop") and command in ("render", "export")
                yield Case(f"{command} into {kind}", out, TAKEN if loose else REFUSED)
    for command in ("simulate", "static"):
        for name in ("missing.ply", "", ".", "/dev/zero", "\x1b[2J.ply"):

            def shape(folder: Path, command=command, name=name) -> list[str]:
                (folder / "scene.toml").write_text(toml_text(BLOCK))
                return [*words_of(command), "--shape", name]

            yield Case(f"{command} the shape {name!r}", shape)


def _others() -> Iterator[Case]:
    def plain(*words: str, expected: str = REFUSED) -> Case:
        return Case(f"pliant {' '.join(words)[:60]!r}", lambda folder: list(words), expected)

    for words in (["--nothing"], ["nothing"], [""], ["simulate"], ["simulate", "bar", "bar"],
                  ["scenes", "nothing"], ["scenes", "\x1b[2J"], ["bench", "nothing"],
                  ["simulate", "--out"], ["--version", "x", "--y"], ["observe", "--scene"],
                  ["view", "bar", "--no-browser", "--host", ""],
                  ["view", "bar", "--no-browser", "--host", " "],
                  ["view", "bar", "--no-browser", "--host", "256.1.1.1"],
                  ["view", "bar", "--no-browser", "--port", "65536"],
                  ["view", "bar", "--no-browser", "--port", "-1"],
                  ["view", "bar", "--no-browser", "--folder", "nowhere"],
                  ["view", "nothing", "--no-browser"], ["fit-curve"], ["scan", "nowhere"],
                  ["reconstruct", "bar", "--prior", "youngs_modulus"],
                  ["reconstruct", "bar", "--bound", "youngs_modulus=1"],
                  ["reconstruct", "bar", "--unknown", "youngs_modulus=1e400"],
                  ["landscape", "bar", "--over", "density", "density"],
                  ["simulate", "bar", "--device", "toaster"]):  # fmt: skip
        if words != ["--version", "x", "--y"]:
            yield plain(*words)
    yield plain("scenes", expected=TAKEN)
    yield plain("scenes", "bar", "--json", expected=TAKEN)

    def threads(folder: Path) -> list[str]:
        (folder / "scene.toml").write_text(toml_text(BLOCK))
        return [*words_of("simulate"), "--threads", "1000000"]

    yield Case("a million threads", threads, TAKEN)
