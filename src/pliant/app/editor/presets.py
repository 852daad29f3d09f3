"""Real materials to start from, with where their numbers were published.

Soft matter varies with recipe, strain and rate: each preset is one point of a published range, for
small strains. Poisson's ratios of nearly incompressible matter are capped at 0.49, where trilinear
cells still bend. Rayleigh coefficients are ours: they give about the loss of the source at 5 Hz.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """Young's modulus [Pa], its published range [Pa], Poisson's ratio, density [kg/m^3], damping.

    mass_damping [1/s], stiffness_damping [s]; source: where the modulus was published.
    """

    youngs_modulus: float
    reported: tuple[float, float]
    poisson_ratio: float
    density: float
    mass_damping: float
    stiffness_damping: float
    source: str

    def table(self) -> dict[str, float]:
        """The [material] table of a scene file."""
        return {
            "youngs_modulus": self.youngs_modulus,
            "poisson_ratio": self.poisson_ratio,
            "density": self.density,
            "mass_damping": self.mass_damping,
            "stiffness_damping": self.stiffness_damping,
        }


PRESETS = {
    "Gelatin, 5 %": Preset(
        4.0e3, (2.0e3, 1.0e4), 0.49, 1010.0, 0.2, 0.002,
        "Hall, Bilgen, Insana and Krouskop, Phantom materials for elastography, IEEE Transactions "
        "on Ultrasonics, Ferroelectrics and Frequency Control 44 (1997): gelatin gels of a few "
        "percent have 2 to 10 kPa.",
    ),
    "Silicone 00-30": Preset(
        6.9e4, (6.0e4, 1.2e5), 0.49, 1070.0, 0.2, 0.003,
        "Smooth-On, Ecoflex 00-30 technical bulletin: stress at 100 % strain 10 psi (69 kPa), "
        "specific gravity 1.07.",
    ),
    "Foam, soft polyurethane": Preset(
        4.0e4, (2.0e4, 1.5e5), 0.3, 30.0, 0.5, 0.01,
        "Gibson and Ashby, Cellular Solids (1997), chapter 5: open-cell flexible polyurethane, "
        "relative density 0.025 to 0.03, about 10 to 100 kPa, Poisson's ratio near 1/3.",
    ),
    "Muscle, relaxed": Preset(
        1.2e4, (7.0e3, 3.0e4), 0.49, 1060.0, 0.3, 0.005,
        "Gennisson et al., Transient elastography in anisotropic medium, J. Acoust. Soc. Am. 114 "
        "(2003) and shear wave studies after it: shear moduli of 3 to 5 kPa across and along "
        "relaxed fibres, E about 3 mu; density 1060 from Mendez and Keys (1960).",
    ),
    "Rubber, soft natural": Preset(
        1.0e6, (7.0e5, 4.0e6), 0.49, 930.0, 0.1, 0.0005,
        "Treloar, The Physics of Rubber Elasticity (1975): unfilled vulcanised natural rubber, "
        "shear modulus about 0.4 MPa, density 930.",
    ),
}  # fmt: skip
"""By the name that the Material panel shows."""
