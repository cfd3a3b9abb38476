"""Linear layers in the number formats of the engine: `y = x W^T (+ b)`.

`Int8Linear` quantises weights per output channel once and activations per token at each call
(symmetric, as LLM.int8() without the outlier split, arXiv 2208.07339). On a CPU with VNNI it was
measured at 760 GOP/s where bf16 reached 374 GFLOP/s (2 cores of a Zen 4, 512 rows, torch 2.13), and
at one row it reads half the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch.nn import functional

from backend.ops.few_rows_linear import MOST_ROWS, few_rows_linear
from backend.ops.row_quantise import Implementation, row_quantise

Precision = Literal["float32", "bfloat16", "float16", "int8"]

LinearFormat = Literal["dense", "fp8"]
"""Of the products in a layer on a GPU: as the weights' precision says, or weights and activations
in e4m3 with a scale per row."""

FewRows = Literal["library", "fp8", "all"]
"""Which layers on a GPU take up to `MOST_ROWS` rows through `backend.ops.few_rows_linear`: none,
those with weights in e4m3 and the head beside them, or those with weights in 16 bits too."""

_PACKED_ROWS = 16
"""From this many rows on the packed oneDNN kernel wins over `torch._int_mm` (measured at 576 x
3072: 1 row 22 against 53 us, 8 rows 95 against 93, 512 rows equal but with the result in bf16)."""


_FP8_MULTIPLE = 16
"""What inputs and outputs of an FP8 layer must be multiples of."""


@dataclass(frozen=True, slots=True)
class QuantisedRows:
    """Rows in eight bits: `values` [rows, width], int8 or e4m3, times `scale` [rows, 1]
    (float32)."""

    values: torch.Tensor
    scale: torch.Tensor


def quantise_rows(x: torch.Tensor) -> QuantisedRows:
    """Symmetric int8 per row. A row of zeros keeps scale 0."""
    x = x.float()
    peak = x.abs().amax(-1, keepdim=True)
    inverse = 127.0 / peak.clamp_min(1e-30)
    return QuantisedRows((x * inverse).round_().to(torch.int8), peak / 127.0)


class DenseLinear:
    """Weights [out, in] in a floating format; computes in that format."""

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, few_rows: bool = False
    ) -> None:
        """With `few_rows` a few rows have a kernel of their own."""
        self.weight = weight
        self.bias = bias
        self._few_rows = few_rows
        self._impl: Implementation = "triton" if weight.is_cuda else "reference"

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in the weights' dtype."""
        x = x.to(self.weight.dtype)
        if self._few_rows and 0 < len(x) <= MOST_ROWS:
            return few_rows_linear(x.contiguous(), self.weight, bias=self.bias, impl=self._impl)
        return functional.linear(x, self.weight, self.bias)


class Int8Linear:
    """Weights [out, in] as int8 with a scale per output channel; results in bfloat16."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        rows = quantise_rows(weight)
        self.values = rows.values.contiguous()
        self.scale = rows.scale.flatten()
        self._zero_points = torch.zeros(weight.shape[0], dtype=torch.long)
        self._packed = torch.ops.onednn.qlinear_prepack(self.values, None)
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in bfloat16."""
        return self.from_rows(quantise_rows(x))

    def from_rows(self, rows: QuantisedRows) -> torch.Tensor:
        """The same for rows that are quantised already."""
        if rows.values.shape[0] < _PACKED_ROWS:
            exact = torch._int_mm(rows.values, self.values.t())
            out = (exact * (rows.scale * self.scale)).to(torch.bfloat16)
        else:
            out = self._packed_product(rows)
        return out if self.bias is None else out.add_(self.bias)

    def _packed_product(self, rows: QuantisedRows) -> torch.Tensor:
        # oneDNN's fast path wants unsigned activations: flipping the top bit adds 128.
        unsigned = rows.values.view(torch.uint8).bitwise_xor(0x80)
        out: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            unsigned, 1.0, 128, self._packed, self.scale, self._zero_points,
            None, 1.0, 0, torch.bfloat16, "none", [], "",
        )  # fmt: skip
        return out.mul_(rows.scale.to(torch.bfloat16))


class Fp8Linear:
    """Weights [out, in] in e4m3 with a scale per output, activations in e4m3 with a scale per
    token, summed in float32; results in bfloat16. On a GPU of compute capability 8.9 or more."""

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, few_rows: bool = False
    ) -> None:
        """With `few_rows` a few rows have a kernel of their own, and stay in bfloat16: then the
        weights are all of the work, and quantising rows would only cost time and accuracy."""
        self._impl: Implementation = "triton" if weight.is_cuda else "reference"
        self._weight, scale = row_quantise(weight.contiguous(), impl=self._impl)
        self._scale = scale.flatten()
        self._few_rows = few_rows
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in bfloat16."""
        if not self.quantises(len(x)):
            return self._few(x, gated=False)
        return self.from_rows(QuantisedRows(*row_quantise(x.contiguous(), impl=self._impl)))

    def gated(self, x: torch.Tensor) -> torch.Tensor:
        """silu(gate) * up, [rows, out / 2] in bfloat16, of rows that are not quantised here, gate
        and up being the halves of what the layer gives."""
        return self._few(x, gated=True)

    def quantises(self, rows: int) -> bool:
        """Whether so many rows are quantised here, and may come so (`from_rows`)."""
        return not (self._few_rows and 0 < rows <= MOST_ROWS)

    def from_rows(self, rows: QuantisedRows) -> torch.Tensor:
        """The same for rows that are e4m3 already."""
        out: torch.Tensor = torch._scaled_mm(
            rows.values, self._weight.t(), rows.scale, self._scale[None],
            out_dtype=torch.bfloat16, use_fast_accum=True,
        )  # fmt: skip
        return out if self.bias is None else out.add_(self.bias)

    def _few(self, x: torch.Tensor, *, gated: bool) -> torch.Tensor:
        return few_rows_linear(
            x.to(torch.bfloat16).contiguous(), self._weight, self._scale, self.bias,
            gated=gated, impl=self._impl,
        )  # fmt: skip

    @staticmethod
    def takes(weight: torch.Tensor) -> bool:
        """Whether the product's kernel takes this shape."""
        return not any(size % _FP8_MULTIPLE for size in weight.shape)


def head_rows(form: LinearFormat, few_rows: FewRows) -> FewRows:
    """What a head in 16 bits takes of a model whose layers are of this form: the kernel wherever
    FP8 layers take it."""
    return "all" if (form, few_rows) == ("fp8", "fp8") else few_rows


class Linear(Protocol):
    """A linear layer of any format."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        ...


def make_linear(
    precision: Precision,
    device: torch.device,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    form: LinearFormat = "dense",
    few_rows: FewRows = "library",
) -> Linear:
    """A linear layer of the given precision on the given device, its product in the given form
    where the kernel takes the shape. `few_rows` is for GPUs; others ignore it."""
    on_gpu = device.type == "cuda"
    if precision == "int8":
        return Int8Linear(weight.float(), bias)
    if form == "fp8" and Fp8Linear.takes(weight):
        shift = None if bias is None else bias.to(device)
        return Fp8Linear(weight.to(device), shift, few_rows=on_gpu and few_rows != "library")
    dtype: torch.dtype = getattr(torch, precision)
    moved = None if bias is None else bias.to(device, dtype)
    few = on_gpu and few_rows == "all" and dtype.itemsize == 2
    return DenseLinear(weight.to(device, dtype).contiguous(), moved, few_rows=few)
