"""Material: presets of real materials, the numbers, and what they mean."""

import math

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.presets import PRESETS
from pliant.core.errors import BadInput
from pliant.dynamics.constitution import DEFAULT
from pliant.fem.laws import LAWS, find_law
from pliant.fem.laws.curves import uniaxial
from pliant.fem.laws.law import Law
from pliant.fem.material import Material

OWN = "the scene's own"
LINEAR = "linear elastic"
STRETCHES = np.linspace(0.6, 1.6, 41)


def pulled(law: Law | str | None, material: Material) -> tuple[np.ndarray, np.ndarray]:
    """Stretches and the nominal stress [Pa] that a bar of the material answers with."""
    E, nu = (float(np.mean(v)) for v in (material.youngs_modulus, material.poisson_ratio))
    if law is None:
        return STRETCHES, E * (STRETCHES - 1.0)
    known = find_law(law).from_moduli(E, nu) if isinstance(law, str) else law
    for stretches in (STRETCHES, np.linspace(0.9, 1.1, 41)):
        try:
            return stretches, uniaxial(known, stretches)[0]
        except BadInput:  # a law may give way at the far end of the range
            continue
    return STRETCHES, np.zeros_like(STRETCHES)


class MaterialPanel:
    """Changes take effect while the simulation runs."""

    def __init__(self, context: Context):
        import viser.uplot as up

        self.context = context
        gui = context.gui
        self.preset = gui.add_dropdown(
            "Preset", (OWN, *PRESETS), initial_value=OWN,
            hint="Published values of real materials; the source is shown below.",
        )  # fmt: skip
        self.modulus = gui.add_number(
            "Young's modulus [Pa]", 2000.0, min=1e-3, max=1e12, step=1.0,
            hint="Stress per strain when pulled: jelly 1e3, rubber 1e6.",
        )  # fmt: skip
        self.factor = gui.add_button_group("", ("÷ 2", "÷ 1.2", "× 1.2", "× 2"))
        self._laws = (LINEAR, *(name for name, law in LAWS.items() if law.starts is not None))
        self.law = gui.add_dropdown(
            "Law", self._laws, initial_value=LINEAR,
            hint="Linear: stress grows with strain; the others stiffen or soften when stretched "
            "far, and take the modulus and ratio above for small strains.",
        )  # fmt: skip
        self.ratio = gui.add_slider(
            "Poisson's ratio", 0.0, 0.49, 0.005, 0.3,
            hint="How much it thins when pulled; 0.5 keeps its volume.",
        )  # fmt: skip
        self.density = gui.add_number(
            "Density [kg/m³]", 1.0, min=1e-3, max=1e5, step=0.1, hint="Mass per volume."
        )
        self.mass_damping = gui.add_number(
            "Mass damping [1/s]", 0.0, min=0.0, max=1e4, step=0.01,
            hint="Slows all motion, like a thick fluid: slow modes most.",
        )  # fmt: skip
        self.stiffness_damping = gui.add_number(
            "Stiffness damping [s]", 0.0, min=0.0, max=10.0, step=0.0001,
            hint="Slows changes of shape: fast modes most.",
        )  # fmt: skip
        self.meaning = gui.add_markdown("")
        self.curve = gui.add_uplot(
            (STRETCHES, np.zeros_like(STRETCHES)),
            (up.Series(label="stretch"), up.Series(label="stress", stroke="#2d6cc4", width=2)),
            title="stress [Pa] over stretch, pulled along one axis",
            axes=(up.Axis(), up.Axis(size=80)),  # room for a minus and eight digits
            scales={"x": up.Scale(time=False), "y": up.Scale(auto=True)},
            legend=up.Legend(show=False), height=150,
        )  # fmt: skip
        self.plot = gui.add_uplot(
            (np.array([0.1, 100.0]), np.zeros(2)),
            (up.Series(label="f [Hz]"), up.Series(label="ratio", stroke="#c4552d", width=2)),
            title="damping ratio over frequency [Hz]",
            scales={"x": up.Scale(time=False, distr=3), "y": up.Scale(auto=True)},
            legend=up.Legend(show=False), height=150,
        )  # fmt: skip
        self.source = gui.add_markdown("")
        self._by_key = {
            "youngs_modulus": self.modulus,
            "poisson_ratio": self.ratio,
            "density": self.density,
            "mass_damping": self.mass_damping,
            "stiffness_damping": self.stiffness_damping,
        }
        for key, handle in self._by_key.items():
            context.on_change(handle, lambda value, key=key: self._set(**{key: float(value)}))
        context.on_change(self.preset, self._take_preset)
        context.on_change(self.law, self._set_law)
        context.on_choice(self.factor, self._scale)

    def refresh(self) -> None:
        """Show the material of the scene."""
        material = self.context.session.scene.material
        uniform = all(np.ndim(getattr(material, k)) == 0 for k in self._by_key)
        for key, handle in self._by_key.items():
            value = getattr(material, key)
            handle.disabled = np.ndim(value) > 0
            handle.value = float(np.mean(value))
        own_law = self._show_law()
        if material.regions:
            own_law += (
                "Regions of the body have numbers of their own (see the scene file); these are of "
                "the rest.\n\n"
            )
        self._explain(material, uniform, own_law)
        own = next((n for n, p in PRESETS.items() if self._matches(p.table(), material)), OWN)
        self.preset.value = own
        if own in PRESETS:
            preset = PRESETS[own]
            low, high = preset.reported
            self.source.content = (
                f"*{own}*: reported {low / 1e3:g} to {high / 1e3:g} kPa. {preset.source}"
            )
        else:
            self.source.content = ""

    def _matches(self, table: dict[str, float], material: Material) -> bool:
        values = [(getattr(material, k), v) for k, v in table.items()]
        return all(np.ndim(a) == 0 and math.isclose(float(a), v) for a, v in values)

    def _show_law(self) -> str:
        """Select the scene's law; returns a sentence if it has parameters of its own."""
        law = self.context.session.description.get("law")
        name = law["name"] if isinstance(law, dict) else law
        shown = LINEAR if name is None else name if isinstance(law, str) else f"{name}, {OWN}"
        options = self._laws if shown in self._laws else (*self._laws, shown)
        if self.law.options != options:
            self.law.options = options
        self.law.value = shown
        if not isinstance(law, dict):
            return ""
        for key in ("youngs_modulus", "poisson_ratio"):
            self._by_key[key].disabled = True
        numbers = ", ".join(f"{k} = {v:g}" for k, v in law.items() if isinstance(v, float))
        return f"The scene's law has its own numbers ({numbers}): modulus and ratio do nothing.\n\n"

    def _set_law(self, name: str) -> None:
        if not name.endswith(OWN):
            linear = name == LINEAR
            model = {} if linear else {"model": DEFAULT}  # a law is a model of its own
            self.context.session.change(law=None if linear else name, **model)

    def _explain(self, material: Material, uniform: bool, own_law: str) -> None:
        lam, mu = (float(np.mean(x)) for x in material.lame(len(self.context.session.body.cells)))
        rho = float(np.mean(material.density))
        varies = "" if uniform else "Values differ from cell to cell; means are shown.\n\n"
        self.meaning.content = (
            f"{own_law}{varies}shear modulus {_si(mu)}Pa, "
            f"bulk modulus {_si(lam + 2 * mu / 3)}Pa  \n"
            f"waves travel at {math.sqrt((lam + 2 * mu) / rho):.3g} m/s (pressure), "
            f"{math.sqrt(mu / rho):.3g} m/s (shear)"
        )
        self.curve.data = pulled(self.context.session.scene.law, material)
        f = np.logspace(-1, 2, 61)
        w = 2.0 * np.pi * f
        alpha, beta = material.mass_damping, material.stiffness_damping
        self.plot.data = (f, 0.5 * (alpha / w + beta * w))

    def _set(self, **values: float) -> None:
        self.context.session.set("material", **values)

    def _take_preset(self, name: str) -> None:
        if name in PRESETS:
            self.context.session.set("material", **PRESETS[name].table())

    def _scale(self, label: str) -> None:
        sign, number = label.split()
        factor = float(number) if sign == "×" else 1.0 / float(number)
        self._set(youngs_modulus=float(f"{self.modulus.value * factor:.4g}"))


def _si(value: float) -> str:
    """1234.0 as "1.23 k"."""
    for power, letter in ((9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 10.0**power:
            return f"{value / 10.0**power:.3g} {letter}"
    return f"{value:.3g} "
