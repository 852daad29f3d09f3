"""A mesh coloured by values, as bands: one plain mesh of the page for each colour.

viser's streaming meshes have one colour, and its coloured ones flicker when they change; so the
triangles are sorted into bands by their mean value, as in a contour plot.
"""

from typing import Any

import numpy as np

BANDS = 16


def palette(count: int = BANDS) -> list[tuple[int, int, int]]:
    """Colours from low to high."""
    from matplotlib import colormaps

    rows = colormaps["turbo"](np.linspace(0.08, 0.92, count))[:, :3]
    return [(int(r), int(g), int(b)) for r, g, b in (255 * rows).round()]


def css_gradient(count: int = BANDS) -> str:
    """The palette as a CSS background."""
    stops = ", ".join(f"rgb{c}" for c in palette(count))
    return f"linear-gradient(to right, {stops})"


class ColouredMesh:
    """Bands of a mesh under one scene node."""

    def __init__(self, scene: Any, name: str):
        self._scene, self._name = scene, name
        self._bands: list[Any] = []

    def show(self, vertices: np.ndarray, faces: np.ndarray, values: np.ndarray) -> None:
        """Triangles (faces, 3) of vertices (n, 3) by values (n,) between 0 and 1."""
        mean = np.clip(values[faces].mean(axis=1), 0.0, 1.0)
        band = np.minimum((mean * BANDS).astype(int), BANDS - 1)
        self._make()
        for index, handle in enumerate(self._bands):
            own = faces[band == index]
            if len(own) == 0:
                if handle.visible:
                    handle.visible = False
                continue
            used, inverse = np.unique(own, return_inverse=True)
            handle.vertices = vertices[used].astype(np.float32)
            handle.faces = inverse.reshape(-1, 3).astype(np.uint32)
            if not handle.visible:
                handle.visible = True

    def hide(self) -> None:
        """Show nothing."""
        for handle in self._bands:
            if handle.visible:
                handle.visible = False

    def remove(self) -> None:
        """Take the meshes out of the scene."""
        for handle in self._bands:
            handle.remove()
        self._bands = []

    def _make(self) -> None:
        if self._bands:
            return
        corner = np.zeros((3, 3), np.float32)
        self._bands = [
            self._scene.add_mesh_simple(
                f"{self._name}/{i}", corner, np.array([[0, 1, 2]], np.uint32), color=colour,
                side="double", visible=False,
            )
            for i, colour in enumerate(palette())
        ]  # fmt: skip
