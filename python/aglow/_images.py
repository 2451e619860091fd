"""Images as samples: read, resized and normalised as a model takes them."""
from __future__ import annotations

import os
import re
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

from ._errors import Fault, FileError, UsageError

_ENDINGS = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".webp")


def images(folder: Union[str, "os.PathLike[str]"], *, size: Optional[tuple[int, int]] = None, crop: float = 1.0,
           channels: str = "RGB", layout: str = "NCHW", mean: Union[float, Sequence[float]] = 0.0,
           std: Union[float, Sequence[float]] = 1.0, scale: float = 1 / 255) -> Iterator[np.ndarray[Any, Any]]:
    """The images of a folder, in the order of their names, each as float32 with a batch of one.

    size      height and width that they are resized to, by bilinear filtering; None: as they are
    crop      the share of both sides, from the middle, that is taken before
    channels  "RGB", "BGR" or "L" (grey)
    layout    "NCHW" or "NHWC"
    value     (pixel * scale - mean) / std, with pixels from 0 to 255; mean and std one number, or one a channel

    Portable pixmaps are read as they are; all else, and resizing, needs Pillow.
    """
    if channels not in ("RGB", "BGR", "L") or layout not in ("NCHW", "NHWC"):
        raise _usage(f"expected channels RGB, BGR or L and layout NCHW or NHWC, got {channels!r} and {layout!r}")
    try:
        names = sorted(name for name in os.listdir(folder) if name.lower().endswith(_ENDINGS))
    except OSError as fault:
        raise FileError([Fault("E801", 8, f"the folder cannot be read: {fault}", os.fspath(folder))]) from None
    if not names:
        raise _usage("the folder holds no images", os.fspath(folder))
    for name in names:
        pixels = _pixels(os.path.join(folder, name), size, crop, channels).astype(np.float32)
        values = (pixels * np.float32(scale) - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
        yield np.ascontiguousarray(values[None] if layout == "NHWC" else values.transpose(2, 0, 1)[None])


def _usage(message: str, where: str = "", hint: str = "") -> UsageError:
    return UsageError([Fault("E101", 1, message, where, hint)])


def _pixels(path: str, size: Optional[tuple[int, int]], crop: float, channels: str) -> np.ndarray[Any, Any]:
    """Height, width, channels."""
    try:
        from PIL import Image
    except ImportError:
        return _pixmap(path, size, crop, channels)
    try:
        with Image.open(path) as image:
            image = image.convert("L" if channels == "L" else "RGB")
            if crop < 1:
                width, height = image.width * crop, image.height * crop
                left, top = round((image.width - width) / 2), round((image.height - height) / 2)
                image = image.crop((left, top, left + round(width), top + round(height)))
            if size is not None:
                image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            return _ordered(np.asarray(image), channels)
    except (OSError, ValueError) as fault:
        raise FileError([Fault("E801", 8, f"the image cannot be read: {fault}", path)]) from None


def _pixmap(path: str, size: Optional[tuple[int, int]], crop: float, channels: str) -> np.ndarray[Any, Any]:
    hint = "install Pillow: pip install pillow"
    if not path.lower().endswith((".pgm", ".ppm")):
        raise _usage("only portable pixmaps are read without Pillow", path, hint)
    with open(path, "rb") as file:
        data = file.read()
    header = re.match(rb"P([56])\s(?:\s*#.*\n)*\s*(\d+)\s+(\d+)\s+255\s", data)
    depth = 3 if header and header[1] == b"6" else 1
    if header is None or len(data) - header.end() < int(header[2]) * int(header[3]) * depth:
        raise FileError([Fault("E803", 8, "expected a binary pixmap of 8 bits, whole", path)])
    width, height = int(header[2]), int(header[3])
    pixels: Any = np.frombuffer(data, np.uint8, width * height * depth, header.end()).reshape(height, width, depth)
    if (size is not None and size != (height, width)) or crop < 1:
        raise _usage("images are resized and cropped by Pillow", path, hint)
    if channels == "L" and depth == 3:
        pixels = np.round(pixels @ np.array([0.299, 0.587, 0.114]))
    elif channels != "L" and depth == 1:
        pixels = pixels.repeat(3, axis=2)
    return _ordered(pixels, channels)


def _ordered(pixels: np.ndarray[Any, Any], channels: str) -> np.ndarray[Any, Any]:
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    return pixels[..., ::-1] if channels == "BGR" else pixels
