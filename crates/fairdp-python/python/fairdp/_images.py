"""Images as the library takes them: texts that hold pixels, a file's bytes, or its path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairdp._values import MISSING, cells, is_missing, shown

Texts = tuple[list[str], np.ndarray]
_SIDES = ("height", "width", "channels")
_EXPECTED = "(height, width), (height, width, channels), or a mapping from height, width, channels and resize to values"
_PIXELS = "whole numbers from 0 to 255"


def declared(name: str, shape: Any) -> dict[str, Any]:
    """What a configuration says of a column of images."""
    entry = dict(shape) if isinstance(shape, Mapping) else None
    if isinstance(shape, Sequence) and not isinstance(shape, (str, bytes)) and len(shape) in (2, 3):
        entry = dict(zip(_SIDES, shape))
    if entry is None or not {"height", "width"} <= entry.keys() <= {*_SIDES, "resize"}:
        raise ValueError(f"images: {name!r} has {shown(shape)}, expected {_EXPECTED}")
    for key in _SIDES:
        value = entry.get(key, 1)
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"images: {key} of {name!r} is {shown(value)}, expected a whole number above 0")
    if not isinstance(entry.get("resize", False), (bool, np.bool_)):
        raise ValueError(f"images: resize of {name!r} is {shown(entry['resize'])}, expected True or False")
    return entry


def of(name: str, columns: Sequence[tuple[str, Any]], size: Mapping[str, Any]) -> Texts:
    """A text for each image; a missing one is empty. The images are in the column of this name, or each column
    has one pixel of each, row by row, channels side by side.
    """
    if columns[0][0] == name:
        return _levels([_text(value, record, name) for record, value in enumerate(cells(columns[0][1]))])
    height, width, channels = (int(size.get(key, 1)) for key in _SIDES)
    if len(columns) != height * width * channels:
        n_pixels = f"{height} × {width} × {channels}"
        raise ValueError(f"images: {name!r} is of {len(columns)} columns, expected {n_pixels}, one for each pixel")
    table = np.empty((len(columns[0][1]), len(columns)), dtype=np.uint8)
    for place, (column, values) in enumerate(columns):
        table[:, place] = _pixels(cells(values), f"column `{column}`")
    return _levels([_written(pixels.reshape(height, width, channels)) for pixels in table])


def _levels(every: list[str]) -> Texts:
    return [MISSING, *every], np.arange(1, len(every) + 1, dtype=np.uint32)


def _text(value: Any, record: int, name: str) -> str:
    where = f"column `{name}`: record {record}"
    if np.ndim(value) == 0 and is_missing(value):
        return MISSING
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"bytes:{bytes(value).hex()}"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    mode = getattr(value, "mode", None)
    if isinstance(mode, str) and mode not in ("L", "RGB"):
        raise TypeError(f"{where} is an image of mode {mode!r}, expected L or RGB; convert it")
    array = np.asarray(value)
    if array.ndim not in (2, 3) or array.size == 0:
        expected = "a path, the bytes of a PNG or JPEG file, or an array of (height, width) or (height, width, channels)"
        raise TypeError(f"{where} is {shown(value)}, expected {expected}")
    return _written(_pixels(array, where).reshape(*array.shape[:2], -1))


def _written(pixels: np.ndarray) -> str:
    height, width, channels = pixels.shape
    return f"pixels:{height}x{width}x{channels}:{pixels.tobytes().hex()}"


def _pixels(values: np.ndarray, where: str) -> np.ndarray:
    """Values as bytes; refuses those that are no bytes, such as pixels from 0 to 1."""
    if values.dtype.kind not in "uif" or (values.dtype.kind == "f" and not (values == np.floor(values)).all()):
        inner = next((value for value in values.flat if not _is_whole(value)), values.flat[0])
        raise ValueError(f"{where} has {shown(inner)} of type {values.dtype}, expected {_PIXELS}")
    if values.size and not (values.min() >= 0 and values.max() <= 255):
        beyond = values.min() if values.min() < 0 else values.max()
        raise ValueError(f"{where} has {shown(beyond)}, expected {_PIXELS}")
    return np.ascontiguousarray(values, dtype=np.uint8)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and float(value).is_integer()
