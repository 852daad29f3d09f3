"""The kernels of laws, made at run time, compile for CUDA as well."""

import pytest
import warp as wp

import pliant as pl
from pliant.fem.forces.law_kernels import law_kernels
from pliant.fem.laws import LAWS

ARCHITECTURE = 75


def compiles(energy, folder, floor=0.0):
    kernels = law_kernels(energy, floor)
    module = kernels.forces.module
    assert {k.key for k in (kernels.tangent, kernels.change)} <= set(module.kernels)
    wp.compile_aot_module(
        module, device=None, arch=ARCHITECTURE, module_dir=str(folder), use_ptx=True
    )
    made = [p for p in folder.iterdir() if p.suffix in (".cubin", ".ptx")]
    assert made
    assert all(p.stat().st_size > 0 for p in made)


def test_a_law_compiles_for_cuda(tmp_path):
    compiles(LAWS["neo-hookean"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LAWS))
def test_every_law_compiles_for_cuda(name, tmp_path):
    compiles(LAWS[name], tmp_path, floor=0.3)


@pytest.mark.slow
def test_own_energy_compiles_for_cuda(tmp_path):
    @pl.energy
    def stiff_along_x(F, p):
        J = pl.laws.det(F)
        I4 = F[0, 0] ** 2 + F[1, 0] ** 2 + F[2, 0] ** 2
        matrix = p.mu / 2 * (pl.laws.first_invariant(F) - 3) + p.k * (J - 1) ** 2
        return matrix + p.f * (I4 - 1) ** 2

    assert not stiff_along_x.isotropic
    compiles(stiff_along_x, tmp_path)
