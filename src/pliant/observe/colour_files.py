"""Colour images beside a depth recording: colour/camera_00/00000.png, or color/, or of one camera
colour/00000.png; PNG or JPEG, as many and as large as the depth images of the camera.
"""

from pathlib import Path

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import require_file, whole_file
from pliant.observe.camera import Camera
from pliant.observe.depth_png import MAX_PIXELS, natural

FOLDERS = ("colour", "color")
ENDINGS = (".png", ".jpg", ".jpeg")
MOST_BYTES = 256 * 1024**2


def write_colour_png(path: Path, image: np.ndarray) -> None:
    """An image (h, w, 3) in 0 .. 1, rounded to 8 bits."""
    from PIL import Image

    levels = np.round(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8)
    with whole_file(path) as temporary:
        Image.fromarray(levels).save(temporary, format="PNG")


def read_colour_image(path: Path, camera: Camera) -> np.ndarray:
    """(h, w, 3) in 0 .. 1; refused where it is not as large as its camera's images."""
    from PIL import Image

    require_file(path, MOST_BYTES)
    try:
        with Image.open(path, formats=["PNG", "JPEG"]) as image:
            size = image.size
            if 0 < size[0] * size[1] <= MAX_PIXELS and size == (camera.width, camera.height):
                return np.asarray(image.convert("RGB"), float) / 255.0
    except Exception as error:  # Pillow raises whatever the damaged file led it to
        raise BadInput(f"{path}: no PNG or JPEG image ({error}): copy it again.") from error
    raise BadInput(
        f"{path}: has {size[0]} x {size[1]} pixels, its camera {camera.width} x {camera.height}: "
        "colours must be registered to the depth images."
    )


def colour_files(folder: Path, *, cameras: int, frames: int) -> list[list[tuple[int, Path]]]:
    """For every frame the cameras that have an image of it, by their number, and the files.

    One camera described by as many poses as there are frames moves: each frame has its own.
    """
    place = next((folder / name for name in FOLDERS if (folder / name).is_dir()), None)
    if place is None:
        raise BadInput(
            f"{folder}: has no colour images: put them into {folder / FOLDERS[0]}/camera_00 "
            "and so on, or film some (pliant observe --colours)."
        )
    own = sorted((p for p in place.glob("camera_*") if p.is_dir()), key=natural)
    lists = [_images(p) for p in own] or [_images(place)]
    if not any(lists):
        raise BadInput(f"{place}: has no images ({', '.join(ENDINGS)}).")
    moves = len(lists) == 1 and cameras == frames > 1
    if len(lists) != cameras and not moves:
        raise BadInput(f"{place}: images of {len(lists)} cameras; the recording has {cameras}.")
    for number, images in enumerate(lists):
        if images and len(images) != frames:
            raise BadInput(
                f"{place}: {len(images)} images of camera {number}; the recording has {frames} "
                "frames."
            )
    return [
        [(k if moves else number, images[k]) for number, images in enumerate(lists) if images]
        for k in range(frames)
    ]


def _images(place: Path) -> list[Path]:
    return sorted((p for p in place.iterdir() if p.suffix.lower() in ENDINGS), key=natural)
