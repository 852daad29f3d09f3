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
    # no source for the density: water with 5 % of a solid of about 1350 kg/m^3
    "Gelatin, 5 %": Preset(
        4.3e3, (3.7e3, 5.0e3), 0.49, 1010.0, 0.2, 0.002,
        "Bonavia, arXiv 2512.20502 (2025): one part of gelatin powder in 20 of water has an "
        "instantaneous stiffness of 4.34 ± 0.64 kPa in compression (one in two: 277 kPa).",
    ),
    "Silicone 00-30": Preset(
        6.9e4, (5.0e4, 1.2e5), 0.49, 1070.0, 0.2, 0.003,
        "Smooth-On, Ecoflex 00-30 technical bulletin: stress at 100 % strain 10 psi (69 kPa), "
        "specific gravity 1.07; a neo-Hookean law through that point starts with 118 kPa. Measured "
        "batches differ by 1.75 (Marechal et al., Hossain et al., both 2021), and it softens after "
        "the first stretch: Case, White and Kramer, Soft material characterization for robotic "
        "applications, Soft Robotics 2 (2015).",
    ),
    # the range is the formula's, from 18 to 57 kg/m^3; no source for a measured one
    "Foam, soft polyurethane": Preset(
        2.8e4, (1.0e4, 1.0e5), 0.3, 30.0, 0.5, 0.01,
        "Gibson and Ashby, Cellular Solids (1997), chapter 5: an open-cell foam has E = E_s "
        "(density / density_s)^2, flexible polyurethane E_s = 45 MPa and 1200 kg/m^3, so 28 kPa at "
        "30 kg/m^3, and Poisson's ratio near 1/3 while strains are small (0.5 to -0.05 on the way "
        "to 66 % compression: Widdle, Bajaj and Davies, Int. J. Engineering Science 46 (2008)).",
    ),
    "Muscle, relaxed": Preset(
        1.2e4, (5.8e3, 1.73e4), 0.49, 1060.0, 0.3, 0.005,
        "Knight et al., IEEE Trans. Medical Imaging 41 (2022), PMC8754054: shear moduli of a "
        "relaxed vastus lateralis 1.93 ± 0.41 kPa across and 5.77 ± 1.00 kPa along the fibres; "
        "here isotropic with their mean, E = 3 mu. Density 1060: Mendez and Keys (1960).",
    ),
    "Rubber, soft natural": Preset(
        1.5e6, (1.1e6, 3.6e6), 0.49, 950.0, 0.1, 0.0005,
        "MatWeb, Natural Rubber, Vulcanized: shear modulus 0.5 MPa, so E = 1.5 MPa, which is also "
        "the stress at 100 % strain; density 950 uncompounded. Range: Shore A 30 to 60 by Gent, "
        "Rubber Chemistry and Technology 31 (1958).",
    ),
}  # fmt: skip
"""By the name that the Material panel shows."""
