"""A test machine's curves: stretch and nominal stress, from text files.

A file has two or more columns of numbers, separated by commas, semicolons, tabs or blanks, with or
without a line of names above them; lines that begin with # are skipped. Which column is what
follows from `columns`, else from the names, else from the numbers: stress and stretch - 1 have one
sign. The kind of loading follows from `loading`, else from the file's name (UT, ET, PS).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import read_text
from pliant.core.numbers import LARGEST

STRESS_UNITS = {
    "Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "GPa": 1e9, "N/mm2": 1e6, "psi": 6894.757293168,
    "kgf/cm2": 98066.5,
}  # fmt: skip

QUANTITIES = ("stretch", "strain", "strain%", "stress")
"""What a column may hold; a strain is the engineering one, stretch - 1."""

LOADING_NAMES = {
    "uniaxial": ("ut", "uc", "utc", "uniaxial", "tension", "compression", "tensile"),
    "equibiaxial": ("et", "eb", "bt", "ebt", "biaxial", "equibiaxial"),
    "pure-shear": ("ps", "pt", "planar", "pureshear", "pure-shear"),
}
"""Words by which a file's name, or a person, says what was done to the specimen."""

MAX_BYTES = 64 * 1024**2
MAX_POINTS = 1_000_000

_STRETCH_WORDS = {"stretch", "lambda", "λ", "l", "stretchratio", "extensionratio"}
_STRAIN_WORDS = {"strain", "engstrain", "engineeringstrain", "nominalstrain", "eps", "e", "ε"}
_STRESS_WORDS = {
    "stress", "nominalstress", "engstress", "engineeringstress", "p", "pk1", "piola", "s",
    "force/area",
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """One measured curve. loading: "uniaxial", "equibiaxial" or "pure-shear"; stretch (n,) [1];
    stress (n,): force over the cross section at rest [Pa]; name: for tables and pictures.
    """

    loading: str
    stretch: np.ndarray
    stress: np.ndarray
    name: str = "curve"

    def __post_init__(self):
        loading = loading_of(self.loading)
        if loading is None:
            raise BadInput(
                f"{self.name}: loading must be uniaxial, equibiaxial or pure-shear, "
                f"not '{self.loading}'."
            )
        stretch, stress = (np.array(x, float).reshape(-1) for x in (self.stretch, self.stress))
        if len(stretch) != len(stress):
            raise BadInput(f"{self.name}: {len(stretch)} stretches but {len(stress)} stresses.")
        if len(stretch) < 2:
            raise BadInput(f"{self.name}: a curve needs two points or more, not {len(stretch)}.")
        if not (np.isfinite(stretch).all() and np.isfinite(stress).all()):
            raise BadInput(f"{self.name}: a stretch or stress is not finite; remove the line.")
        if (stretch <= 0.0).any():
            raise BadInput(
                f"{self.name}: the stretch {stretch.min():g} is not positive; if the column holds "
                "strains, say so: columns = 'strain,stress'."
            )
        if not np.abs(stretch - 1.0).max() > 0.0 or not np.abs(stress).max() > 0.0:
            raise BadInput(f"{self.name}: nothing was stretched or no stress was measured.")
        for key, value in (("loading", loading), ("stretch", stretch), ("stress", stress)):
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.stretch)


def loading_of(text: str) -> str | None:
    """The kind of loading that a word names; None if none."""
    word = text.strip().lower().replace("_", "-").replace(" ", "-")
    for loading, names in LOADING_NAMES.items():
        if word == loading or word in names:
            return loading
    return None


def stress_unit(text: str) -> float:
    """Pascals in a unit of stress."""
    plain = {u.lower(): f for u, f in STRESS_UNITS.items()}
    found = plain.get(text.strip().lower().replace("²", "2").replace("^", ""))
    if found is None:
        raise BadInput(f"units must be one of {', '.join(STRESS_UNITS)}, not '{text}'.")
    return found


def load_curve(
    path: str | Path,
    *,
    loading: str | None = None,
    units: str | None = None,
    columns: str | None = None,
) -> Curve:
    """The curve in a file. units: of the stress; columns: what each column holds, in order, such as
    "stress,stretch" ("-" for one to be skipped).
    """
    path = Path(path)
    names, table = _table(path)  # first: a file that is not there has no use for a loading
    kind = _loading(path, loading)
    roles, unit = _roles(path, names, table, columns)
    if units is None and unit is None:
        raise BadInput(
            f"{path}: the unit of the stress is not stated: give --units MPa (or Pa, kPa, psi)."
        )
    factor = stress_unit(units if units is not None else unit or "Pa")
    stress = factor * table[:, roles["stress"]]
    if "stretch" in roles:
        stretch = table[:, roles["stretch"]]
    elif "strain" in roles:
        stretch = 1.0 + table[:, roles["strain"]]
    else:
        stretch = 1.0 + 0.01 * table[:, roles["strain%"]]
    try:
        return Curve(kind, stretch, stress, path.stem)
    except BadInput as error:
        raise BadInput(f"{path}: {str(error).split(': ', 1)[-1]}") from error


def _loading(path: Path, stated: str | None) -> str:
    if stated is not None:
        found = loading_of(stated)
        if found is None:
            raise BadInput(f"loading must be uniaxial, equibiaxial or pure-shear, not '{stated}'.")
        return found
    words = re.split(r"[^a-z]+", path.stem.lower())
    joined = [a + b for a, b in zip(words, words[1:], strict=False)]
    found = {loading_of(w) for w in (*words, *joined)} - {None}
    if len(found) != 1:
        raise BadInput(
            f"{path}: its name does not say how the specimen was loaded: give --loading uniaxial, "
            "equibiaxial or pure-shear, or put UT, ET or PS into the name."
        )
    return str(found.pop())


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names above the columns (none: empty) and the numbers (rows, columns)."""
    names: list[str] = []
    rows: list[list[float]] = []
    for number, line in enumerate(read_text(path, limit=MAX_BYTES).splitlines(), start=1):
        line = line.strip().lstrip("\ufeff")
        if not line or line.startswith("#"):
            continue
        cells = _cells(line)
        try:
            row = [float(c) for c in cells]
        except ValueError:
            if rows:
                raise BadInput(
                    f"{path}: line {number} is not a row of numbers: '{line[:40]}'."
                ) from None
            names = cells  # of several lines of text the last one names the columns
            continue
        if rows and len(row) != len(rows[0]):
            raise BadInput(
                f"{path}: line {number} has {len(row)} columns, the lines before {len(rows[0])}."
            )
        if not all(abs(x) <= LARGEST for x in row):
            raise BadInput(f"{path}: line {number} holds a number that is not finite: remove it.")
        rows.append(row)
        if len(rows) > MAX_POINTS:
            raise BadInput(f"{path}: more than {MAX_POINTS} points: thin the curve out.")
    if not rows:
        raise BadInput(f"{path}: holds no numbers; expected two columns, stretch and stress.")
    if len(rows[0]) < 2:
        raise BadInput(f"{path}: has one column; expected two, stretch and stress.")
    return (names if len(names) == len(rows[0]) else []), np.array(rows)


def _cells(line: str) -> list[str]:
    if ";" in line:  # as written where the comma is the decimal sign
        return [c.strip().replace(",", ".") for c in line.rstrip(";").split(";")]
    if "," in line:
        return [c.strip() for c in line.rstrip(",").split(",")]
    if "\t" in line:
        return [c.strip() for c in line.split("\t")]
    return line.split()


def _roles(
    path: Path, names: list[str], table: np.ndarray, columns: str | None
) -> tuple[dict[str, int], str | None]:
    """Column of each quantity, and the unit of the stress where a name states it."""
    count = table.shape[1]
    if columns is not None:
        words = [w.strip().lower() for w in columns.split(",")]
        wrong = [w for w in words if w not in (*QUANTITIES, "-", "")]
        if wrong:
            raise BadInput(
                f"columns: '{wrong[0]}' is not one of {', '.join(QUANTITIES)} (- to skip one)."
            )
        if len(words) > count:
            raise BadInput(f"{path}: --columns names {len(words)} columns, the file has {count}.")
        roles = {w: k for k, w in enumerate(words) if w in QUANTITIES}
        if "stress" not in roles or len(roles) != 2:
            raise BadInput("columns must name the stress and one of stretch, strain, strain%.")
        return roles, _units_of(names[roles["stress"]]) if names else None
    if names:
        roles = {}
        for k, name in enumerate(names):
            role = _role(path, name)
            if role is not None:
                roles.setdefault(role, k)
        measures = [r for r in roles if r != "stress"]
        if "stress" in roles and measures:
            chosen = "stretch" if "stretch" in measures else measures[0]
            return ({"stress": roles["stress"], chosen: roles[chosen]},
                    _units_of(names[roles["stress"]]))  # fmt: skip
        raise BadInput(
            f"{path}: the names '{', '.join(names)}' do not say which column is the stretch and "
            "which the stress: give --columns, such as stretch,stress."
        )
    if count > 2:
        raise BadInput(
            f"{path}: {count} columns without names: say what they are, such as "
            "--columns stretch,stress,-."
        )
    fits = [_together(table[:, k], table[:, 1 - k]) for k in range(2)]
    if fits[0] == fits[1]:
        raise BadInput(
            f"{path}: the numbers do not tell the stretch from the stress: give --columns "
            "stretch,stress or stress,stretch (or strain instead of stretch)."
        )
    k = 0 if fits[0] else 1
    return {"stretch": k, "stress": 1 - k}, None


def _together(stretch: np.ndarray, stress: np.ndarray) -> bool:
    """Whether all points are pulled where they are longer, pressed where they are shorter."""
    small = 1e-3 * np.abs(stress).max()
    return bool((stretch > 0.0).all() and ((stretch - 1.0) * stress >= -small * 1e-2).all())


def _role(path: Path, name: str) -> str | None:
    plain = re.sub(r"[\[(].*?[\])]", "", name).strip().strip("\"'").lower()
    word = re.sub(r"[\s_\-]+", "", plain)
    if word.startswith(("true", "cauchy")):
        raise BadInput(
            f"{path}: the column '{name}' is true stress or strain; give the nominal one, "
            "force over the area at rest (true stress over stretch, if the volume is kept)."
        )
    if word in _STRETCH_WORDS:
        return "stretch"
    if word.rstrip("%") in _STRAIN_WORDS:
        return "strain%" if "%" in name or "percent" in name.lower() else "strain"
    return "stress" if word in _STRESS_WORDS else None


def _units_of(name: str) -> str | None:
    found = re.search(r"[\[(]\s*([^\])]+?)\s*[\])]", name)
    if found is None:
        return None
    try:
        stress_unit(found.group(1))
    except BadInput:
        return None
    return found.group(1)
