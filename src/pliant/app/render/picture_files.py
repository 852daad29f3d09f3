"""Pictures and films as files: PNG, GIF, MP4."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, MissingExtra
from pliant.core.files import whole_file

MOVIES = (".gif", ".mp4")


def save_png(path: str | Path, image: np.ndarray) -> None:
    """Write a picture."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(image).save(temporary, format="PNG", optimize=True)


def save_gif(path: str | Path, frames: Sequence[np.ndarray], *, seconds: float = 0.05) -> None:
    """Write an animation, each frame shown for `seconds` (to 1/100 s), repeated for ever."""
    from PIL import Image

    if not frames:
        raise BadInput(f"{path}: an animation needs at least one frame.")
    pictures = [Image.fromarray(f) for f in frames]
    palette = _palette(frames)
    reduced = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    with whole_file(path) as temporary:
        reduced[0].save(
            temporary, format="GIF", save_all=True, append_images=reduced[1:],
            duration=max(20, round(1000.0 * seconds)), loop=0,
        )  # fmt: skip


def save_mp4(path: str | Path, frames: Iterable[np.ndarray], *, seconds: float = 0.05) -> None:
    """Write a film (H.264), each frame shown for `seconds`; frames may be made one by one.

    An odd width or height loses its last column or row: the codec has pairs of pixels only.
    """
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingExtra("imageio-ffmpeg", "video", "Writing MP4") from error
    if not seconds > 0.0:
        raise BadInput(f"{path}: a frame must be shown for a time above 0, not {seconds}.")
    writer: Any = None
    rate: Any = 1.0 / seconds  # ffmpeg takes fractions, its wrapper's annotation does not
    with whole_file(path) as temporary:
        try:
            for frame in frames:
                height, width = (n // 2 * 2 for n in frame.shape[:2])
                if writer is None:
                    writer = imageio_ffmpeg.write_frames(
                        str(temporary), (width, height), fps=rate, quality=8,
                        macro_block_size=2, ffmpeg_log_level="error",
                    )  # fmt: skip
                    writer.send(None)
                writer.send(np.ascontiguousarray(frame[:height, :width]))
        except (OSError, RuntimeError) as error:
            raise BadInput(f"{path}: the film could not be encoded ({error}).") from error
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise BadInput(f"{path}: an animation needs at least one frame.")


def _palette(frames: Sequence[np.ndarray]) -> Any:
    """256 colours for all frames: one palette, or the background flickers.

    Half the vote goes to the pixels and half to the distinct colours: by pixels alone, floor and
    sky would take all and leave the body in bands; by colours alone, it would be the reverse.
    """
    from PIL import Image

    chosen = np.concatenate([f[::2, ::2].reshape(-1, 3) for f in frames[:: len(frames) // 8 + 1]])
    colours = np.unique(chosen // 3 * 3, axis=0)
    pixels = chosen[:: max(1, len(chosen) // len(colours))]
    votes = np.concatenate([colours, pixels])[None]
    return Image.fromarray(votes).quantize(256, method=Image.Quantize.MEDIANCUT)
