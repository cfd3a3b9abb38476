"""What is special about AWQ checkpoints: their setting in a config.json, and their packed weights,
which are also given dense under the name that the plain checkpoint has.

It opens no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from backend.errors import CheckpointError
from backend.layers.awq import CODES, AwqWeight

PACKED = (".qweight", ".qzeros", ".scales")
_REMEDY = "Use the unquantised checkpoint, a GGUF file, or one in AWQ's gemm version with 4 bits"
Shapes = dict[str, tuple[int, ...]]


def check_quantisation(path: Path, raw: Mapping[str, Any]) -> None:
    """Raise CheckpointError for weights that are quantised in another way than AWQ's "gemm"."""
    found = raw.get("quantization_config")
    if not found:
        return
    if not isinstance(found, dict) or found.get("quant_method") != "awq":
        raise CheckpointError(path, "the weights are quantised by another program", _REMEDY)
    wanted = {"bits": 4, "version": "gemm", "zero_point": True}
    for name, value in wanted.items():
        stated = found.get(name, value)
        if (stated.lower() if isinstance(stated, str) else stated) != value:
            raise CheckpointError(path, f"its AWQ weights have {name} {stated!r}", _REMEDY)


def dense_shapes(path: Path, found: Mapping[str, tuple[int, ...]]) -> Shapes:
    """`found` with what each packed weight is in the plain checkpoint instead of its parts. Raises
    CheckpointError for parts that don't fit together."""
    shapes = {name: shape for name, shape in found.items() if not _is_packed(name, found)}
    for name in found:
        if not name.endswith(PACKED[0]):
            continue
        module = name.removesuffix(PACKED[0])
        codes, zeros, scales = (found.get(module + suffix, ()) for suffix in PACKED)
        sound = (
            len(codes) == len(scales) == 2
            and scales[1] == codes[1] * CODES
            and scales[0] > 0
            and codes[0] % scales[0] == 0
            and zeros == (scales[0], codes[1])
        )
        if not sound:
            problem = f"the packed tensors of {module} ({codes}, {zeros}, {scales}) don't fit"
            raise CheckpointError(path, problem, _REMEDY)
        shapes[f"{module}.weight"] = (scales[1], codes[0])
    return shapes


def stored_names(name: str, found: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Under which names a tensor of the plain checkpoint lies in the files."""
    module = name.removesuffix(".weight")
    if name not in found and module + PACKED[0] in found:
        return tuple(module + suffix for suffix in PACKED)
    return (name,)


class AwqTensors(Mapping[str, torch.Tensor]):
    """A checkpoint's tensors under their plain names. Packed weights are made dense (float32) each
    time one is asked for, or can be had as they are."""

    def __init__(self, stored: Mapping[str, torch.Tensor]) -> None:
        self._stored = stored

    def __iter__(self) -> Iterator[str]:
        for name in self._stored:
            if not _is_packed(name, self._stored):
                yield name
            elif name.endswith(PACKED[0]):
                yield name.removesuffix(PACKED[0]) + ".weight"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> torch.Tensor:
        packed = self.packed(name.removesuffix(".weight")) if name.endswith(".weight") else None
        return self._stored[name] if packed is None else packed.dense()

    def unpacked(self) -> Mapping[str, torch.Tensor]:
        """The same for what has no use for packed weights."""
        return MappingProxyType(self)

    def packed(self, module: str) -> AwqWeight | None:
        """The weight of a module as it is stored; None for one that is not packed."""
        if module + PACKED[0] not in self._stored:
            return None
        codes, zeros, scales = (self._stored[module + suffix] for suffix in PACKED)
        return AwqWeight(codes, zeros, scales)


def packed_weight(tensors: Mapping[str, torch.Tensor], modules: Sequence[str]) -> AwqWeight | None:
    """The weights of modules with the same inputs as one, packed; None unless all of them are."""
    if not isinstance(tensors, AwqTensors):
        return None
    parts = [part for module in modules if (part := tensors.packed(module)) is not None]
    if len(parts) < len(modules) or len({part.group for part in parts}) > 1:
        return None
    return AwqWeight.joined(parts)


def _is_packed(name: str, all_names: Mapping[str, object]) -> bool:
    module, dot, last = name.rpartition(".")
    return f"{dot}{last}" in PACKED and module + PACKED[0] in all_names
