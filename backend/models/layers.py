"""A decoder's layers with grouped-query attention and a gated MLP, taken out of a checkpoint by
name. It knows no order of computation but its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch.nn import functional

from backend.config import ModelConfig
from backend.errors import CheckpointError
from backend.layers.awq import AwqLinear
from backend.layers.linear import Fp8Linear, Linear, QuantisedRows
from backend.loader.awq import packed_weight
from backend.ops.add_norm import Implementation, add_norm, add_norm_rows
from backend.ops.gated_unit import gated_rows, gated_unit

MakeLinear = Callable[[torch.Tensor, torch.Tensor | None], Linear]
"""A linear layer from weight [out, in] and bias [out] or None."""

_MLP_ROWS = 65_536
"""Most tokens that go through a layer's MLP at once: what it keeps beside them is several times as
wide as the stream."""


class DecoderLayer(Protocol):
    """One layer of any family. `stream` is the residual stream [n, hidden], and `given` what the
    layer before gave, which is not in it yet."""

    def queries(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The stream with `given`, q and k together, and v (see `backend.models.Attend`)."""
        ...

    def out(self, read: torch.Tensor) -> torch.Tensor:
        """[n, hidden] of what attention read."""
        ...

    def feed(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream with `given`, and what the MLP gives, [n, hidden]."""
        ...


@dataclass(frozen=True, slots=True)
class Norm:
    """The RMS norm of the stream before something: `weight` [hidden] in float32."""

    weight: torch.Tensor
    eps: float
    impl: Implementation

    def __call__(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream with `given`, and its norm, both [n, hidden]."""
        return add_norm(stream, given, self.weight, self.eps, impl=self.impl)

    def into(
        self, linear: Linear, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream with `given`, and what a linear layer makes of its norm. Where that takes it
        in e4m3 it is not written otherwise."""
        if isinstance(linear, Fp8Linear) and linear.quantises(len(stream)):
            stream, *rows = add_norm_rows(stream, given, self.weight, self.eps, impl=self.impl)
            return stream, linear.from_rows(QuantisedRows(*rows))
        stream, normed = self(stream, given)
        return stream, linear(normed)


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """down(silu(gate) * up), gate and up in one linear layer."""

    gate_up: Linear
    down: Linear
    impl: Implementation

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[n, hidden] to [n, hidden]."""
        if len(rows) > _MLP_ROWS:
            return torch.cat([self(part) for part in rows.split(_MLP_ROWS)])
        if (few := self.joining(len(rows))) is not None:
            return self.down(few.gated(rows))
        return self.second(self.gate_up(rows))

    def joining(self, rows: int) -> Fp8Linear | None:
        """The layer of gate and up, if it joins those of so few rows in its product."""
        if isinstance(self.gate_up, Fp8Linear) and not self.gate_up.quantises(rows):
            return self.gate_up
        return None

    def second(self, both: torch.Tensor) -> torch.Tensor:
        """[n, hidden] of gate and up, [n, 2 * intermediate]."""
        if isinstance(self.down, Fp8Linear) and self.down.quantises(len(both)):
            return self.down.from_rows(QuantisedRows(*gated_rows(both, impl=self.impl)))
        return self.down(gated_unit(both, impl=self.impl))


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; the norms of q and k are [head_dim] in float32."""

    config: ModelConfig
    attention_norm: Norm
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: Linear
    mlp_norm: Norm
    mlp: GatedMlp

    def queries(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See `DecoderLayer`."""
        config = self.config
        both = config.heads + config.kv_heads
        stream, qkv = self.attention_norm.into(self.qkv, stream, given)
        qkv = qkv.view(-1, both + config.kv_heads, config.head_dim)
        qk, v = qkv[:, :both], qkv[:, both:]
        if self.q_norm is not None and self.k_norm is not None:
            q, k = qk[:, : config.heads], qk[:, config.heads :]
            eps = config.rms_eps
            qk = torch.cat((rms(q, self.q_norm, eps), rms(k, self.k_norm, eps)), 1)
        return stream, qk, v

    def feed(
        self, stream: torch.Tensor, given: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DecoderLayer`."""
        rows = len(stream)
        if rows > _MLP_ROWS or self.mlp.joining(rows) is not None:
            stream, normed = self.mlp_norm(stream, given)
            return stream, self.mlp(normed)
        stream, both = self.mlp_norm.into(self.mlp.gate_up, stream, given)
        return stream, self.mlp.second(both)


def load_layers(config: ModelConfig, source: TensorSource) -> tuple[Layer, ...]:
    """All layers, their linear layers made in the order q/k/v, output, gate/up, down."""
    return tuple(_load_layer(config, source, f"model.layers.{i}.") for i in range(config.layers))


def take(tensors: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """A tensor by name. Raises CheckpointError when the checkpoint lacks it."""
    try:
        return tensors[name]
    except KeyError:
        raise CheckpointError(
            Path(name), "the checkpoint lacks this tensor", "Fetch the model again"
        ) from None


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm over the last dimension, computed in float32."""
    return functional.rms_norm(x.float(), weight.shape, weight, eps).to(x.dtype)


class TensorSource:
    """A checkpoint's tensors made into parts of a model on one device."""

    def __init__(
        self,
        tensors: Mapping[str, torch.Tensor],
        make: MakeLinear,
        device: torch.device,
        dtype: torch.dtype,
        impl: Implementation,
    ) -> None:
        """`dtype` is what the model computes in, `impl` how it does the small operations."""
        self._tensors = tensors
        self._make = make
        self._device = device
        self._dtype = dtype
        self._impl: Implementation = impl

    def exact(self, name: str) -> torch.Tensor:
        """A tensor in float32, such as a norm."""
        return take(self._tensors, name).to(self._device, torch.float32)

    def norm(self, name: str, eps: float) -> Norm:
        """The norm of the stream whose weight this is."""
        return Norm(self.exact(name), eps, self._impl)

    def rounded(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor in what the model computes in."""
        return tensor.to(self._device, self._dtype).contiguous()

    def stored(self, name: str) -> torch.Tensor:
        """A tensor as the checkpoint has it."""
        return take(self._tensors, name)

    def linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        """A linear layer of tensors as the checkpoint has them."""
        return self._make(weight, bias)

    def projection(self, modules: Sequence[str], bias: bool) -> Linear:
        """One linear layer of several modules with the same input. What is packed stays so."""
        biases = [self.stored(f"{module}.bias") for module in modules] if bias else []
        shift = torch.cat(biases) if bias else None
        if (packed := packed_weight(self._tensors, modules)) is not None:
            moved = None if shift is None else self.rounded(shift)
            return AwqLinear(packed.to(self._device), moved, self._dtype)
        weight = torch.cat([self.stored(f"{module}.weight") for module in modules])
        return self._make(weight, shift)

    def mlp(self, at: str, bias: bool) -> GatedMlp:
        """The gated MLP whose modules' names begin with `at`."""
        gate_up = self.projection([f"{at}{name}_proj" for name in ("gate", "up")], bias)
        return GatedMlp(gate_up, self.projection([f"{at}down_proj"], bias), self._impl)


def _load_layer(config: ModelConfig, source: TensorSource, at: str) -> Layer:
    qkv = [f"{at}self_attn.{name}_proj" for name in "qkv"]
    return Layer(
        config=config,
        attention_norm=source.norm(at + "input_layernorm.weight", config.rms_eps),
        qkv=source.projection(qkv, config.attention_bias),
        q_norm=source.exact(at + "self_attn.q_norm.weight") if config.qk_norm else None,
        k_norm=source.exact(at + "self_attn.k_norm.weight") if config.qk_norm else None,
        out=source.projection([at + "self_attn.o_proj"], config.attention_output_bias),
        mlp_norm=source.norm(at + "post_attention_layernorm.weight", config.rms_eps),
        mlp=source.mlp(f"{at}mlp.", config.mlp_bias),
    )
