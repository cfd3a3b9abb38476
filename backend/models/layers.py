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
from backend.layers.linear import Linear
from backend.loader.awq import packed_weight
from backend.ops.add_norm import Implementation
from backend.ops.gated_unit import gated_unit

MakeLinear = Callable[[torch.Tensor, torch.Tensor | None], Linear]
"""A linear layer from weight [out, in] and bias [out] or None."""

_MLP_ROWS = 65_536
"""Most tokens that go through a layer's MLP at once: what it keeps beside them is several times as
wide as the stream."""


class DecoderLayer(Protocol):
    """One layer of any family. The norms are [hidden] in float32."""

    @property
    def attention_norm(self) -> torch.Tensor:
        """The norm before attention."""
        ...

    @property
    def mlp_norm(self) -> torch.Tensor:
        """The norm before the MLP."""
        ...

    def queries(self, normed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """q and k together, and v, of normed rows [n, hidden] (see `backend.models.Attend`)."""
        ...

    def out(self, read: torch.Tensor) -> torch.Tensor:
        """[n, hidden] of what attention read."""
        ...

    def mlp(self, normed: torch.Tensor) -> torch.Tensor:
        """[n, hidden] of normed rows [n, hidden]."""
        ...


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
        return self.down(gated_unit(self.gate_up(rows), impl=self.impl))


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: norms [hidden] (or [head_dim] for q and k) in float32 and linear layers."""

    config: ModelConfig
    attention_norm: torch.Tensor
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: Linear
    mlp_norm: torch.Tensor
    mlp: GatedMlp

    def queries(self, normed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DecoderLayer`."""
        config = self.config
        both = config.heads + config.kv_heads
        qkv = self.qkv(normed)
        qkv = qkv.view(-1, both + config.kv_heads, config.head_dim)
        qk, v = qkv[:, :both], qkv[:, both:]
        if self.q_norm is not None and self.k_norm is not None:
            q, k = qk[:, : config.heads], qk[:, config.heads :]
            eps = config.rms_eps
            qk = torch.cat((rms(q, self.q_norm, eps), rms(k, self.k_norm, eps)), 1)
        return qk, v


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
        attention_norm=source.exact(at + "input_layernorm.weight"),
        qkv=source.projection(qkv, config.attention_bias),
        q_norm=source.exact(at + "self_attn.q_norm.weight") if config.qk_norm else None,
        k_norm=source.exact(at + "self_attn.k_norm.weight") if config.qk_norm else None,
        out=source.projection([at + "self_attn.o_proj"], config.attention_output_bias),
        mlp_norm=source.exact(at + "post_attention_layernorm.weight"),
        mlp=source.mlp(f"{at}mlp.", config.mlp_bias),
    )
