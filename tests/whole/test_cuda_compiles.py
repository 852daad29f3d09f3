"""Every kernel of the package compiles for CUDA, on a machine without a GPU."""

import importlib
import pkgutil

import pytest
import warp as wp

import pliant

ARCHITECTURE = 75


def modules_with_kernels():
    """{Warp module: names of its kernels}, from every Python module of the package."""
    found = {}
    for info in pkgutil.walk_packages(pliant.__path__, "pliant."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, wp.Kernel):
                found.setdefault(value.module, set()).add(value.key)
    return found


@pytest.fixture(scope="module")
def modules():
    return modules_with_kernels()


def test_kernels_are_found(modules):
    names = {m.name for m in modules}
    for expected in ("fem.forces.elasticity", "fem.forces.wall_operator", "linalg.blocks",
                     "linalg.pcg", "dynamics.contact"):  # fmt: skip
        assert f"pliant.{expected}" in names
    assert sum(len(k) for k in modules.values()) > 25
    # modules that Warp knows of but this search missed (kernels made inside functions, say)
    known = {m.name for m in wp._src.context.user_modules.values() if m.kernels}
    missed = {n for n in known if n.startswith("pliant.")} - names
    assert not missed


@pytest.mark.slow
def test_every_kernel_compiles_for_cuda(modules, tmp_path):
    for module in modules:
        folder = tmp_path / module.name
        folder.mkdir()
        wp.compile_aot_module(
            module, device=None, arch=ARCHITECTURE, module_dir=str(folder), use_ptx=True
        )
        made = [p for p in folder.iterdir() if p.suffix in (".cubin", ".ptx")]
        assert made, module.name
        assert all(p.stat().st_size > 0 for p in made)
