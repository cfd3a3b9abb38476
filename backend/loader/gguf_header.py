"""Reads the header of a GGUF file (version 2 or 3, little-endian): metadata and tensor places.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Types and block sizes come from
the `gguf` package, whose own reader is not used: it takes 2.4 s for a vocabulary of 49,152 (this
takes 0.07 s), and a damaged array length keeps it busy for ever. Here every length is checked
against the file before it is believed.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType

_SCALARS = {
    GGUFValueType.UINT8: "<B",
    GGUFValueType.INT8: "<b",
    GGUFValueType.UINT16: "<H",
    GGUFValueType.INT16: "<h",
    GGUFValueType.UINT32: "<I",
    GGUFValueType.INT32: "<i",
    GGUFValueType.UINT64: "<Q",
    GGUFValueType.INT64: "<q",
    GGUFValueType.FLOAT32: "<f",
    GGUFValueType.FLOAT64: "<d",
    GGUFValueType.BOOL: "<?",
}
_ALIGNMENT = 32
_MAX_DIMENSIONS = 4


class DamagedHeader(ValueError):
    """The header contradicts itself or the size of the file."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """`shape` is row-major (rows first, as in torch); the bytes are `[offset, offset + size)` of
    the file, in blocks of `kind`."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """`fields` by metadata key; numbers, strings, booleans and lists of them."""

    fields: dict[str, Any]
    tensors: dict[str, TensorPlace]


def read_header(path: Path) -> GgufHeader:
    """Raises DamagedHeader (a ValueError) or OSError."""
    with path.open("rb") as file:
        try:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DamagedHeader("it is empty") from error
    with view:
        return _Cursor(view).header()


def read_blocks(path: Path, place: TensorPlace) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The stored bytes of a tensor, mapped from the file: [rows, bytes per row]."""
    rows = prod(place.shape[:-1])
    shape = (rows, place.size // rows)
    return np.memmap(path, dtype=np.uint8, mode="r", offset=place.offset, shape=shape)


class _Cursor:
    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._length = len(view)
        self._at = 0

    def header(self) -> GgufHeader:
        if self._take(4) != b"GGUF":
            raise DamagedHeader("it does not start with GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            raise DamagedHeader(f"its GGUF version is {version}; 2 and 3 (little-endian) are read")
        tensor_count, field_count = self._number("<Q"), self._number("<Q")
        # The shortest field is 13 bytes, the shortest tensor entry 24.
        self._expect(field_count * 13 + tensor_count * 24)
        fields: dict[str, Any] = {}
        for _ in range(field_count):
            key = self._string()
            if key in fields:
                raise DamagedHeader(f"it states {key} twice")
            fields[key] = self._value(self._number("<I"))
        entries = [self._tensor_entry() for _ in range(tensor_count)]
        alignment = fields.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise DamagedHeader(f"its alignment is {alignment!r}")
        start = -(-self._at // alignment) * alignment
        tensors = {name: self._place(name, start, *rest) for name, rest in entries}
        if len(tensors) != tensor_count:
            raise DamagedHeader("it lists a tensor twice")
        return GgufHeader(fields, tensors)

    def _expect(self, size: int) -> None:
        if size > self._length - self._at:
            raise DamagedHeader(f"it ends at byte {self._length}, in the middle of its header")

    def _take(self, size: int) -> bytes:
        self._expect(size)
        piece = self._view[self._at : self._at + size]
        self._at += size
        return piece

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _string(self) -> str:
        try:
            return self._take(self._number("<Q")).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DamagedHeader(f"a text before byte {self._at} is not UTF-8") from error

    def _value(self, kind: int) -> Any:
        if kind == GGUFValueType.STRING:
            return self._string()
        if kind == GGUFValueType.ARRAY:
            return self._array(self._number("<I"), self._number("<Q"))
        return self._number(self._form(kind))

    def _array(self, kind: int, length: int) -> list[Any]:
        if kind == GGUFValueType.STRING:
            self._expect(length * 8)
            read: Callable[[], str] = self._string
            return [read() for _ in range(length)]
        form = self._form(kind)
        size = struct.calcsize(form)
        self._expect(length * size)
        return list(struct.unpack(f"<{length}{form[1]}", self._take(length * size)))

    def _form(self, kind: int) -> str:
        try:
            return _SCALARS[GGUFValueType(kind)]
        except (ValueError, KeyError) as error:
            raise DamagedHeader(f"it holds a value of unknown type {kind}") from error

    def _tensor_entry(self) -> tuple[str, tuple[tuple[int, ...], int, int]]:
        name = self._string()
        dimensions = self._number("<I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise DamagedHeader(f"the tensor {name} has {dimensions} dimensions")
        shape = tuple(self._number("<Q") for _ in range(dimensions))[::-1]
        return name, (shape, self._number("<I"), self._number("<Q"))

    def _place(
        self, name: str, start: int, shape: tuple[int, ...], kind: int, offset: int
    ) -> TensorPlace:
        try:
            known = GGMLQuantizationType(kind)
        except ValueError as error:
            raise DamagedHeader(f"the tensor {name} is of unknown type {kind}") from error
        per_block, block_bytes = GGML_QUANT_SIZES[known]
        if 0 in shape or shape[-1] % per_block:
            raise DamagedHeader(
                f"the tensor {name} has a shape {shape} that {known.name} can't have"
            )
        size = prod(shape) // per_block * block_bytes
        if start + offset + size > self._length:
            missing = start + offset + size - self._length
            raise DamagedHeader(f"it is cut short: {name} lacks {missing} bytes")
        return TensorPlace(shape, known, start + offset, size)
