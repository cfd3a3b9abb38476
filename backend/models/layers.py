"""The weights of a decoder's layers, taken out of a checkpoint by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from backend.config import ModelConfig
from backend.errors import CheckpointError
from backend.layers.linear import Linear

MakeLinear = Callable[[torch.Tensor, torch.Tensor | None], Linear]
"""A linear layer from weight [out, in] and bias [out] or None."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: norms [hidden] (or [head_dim] for q and k) in float32 and four linear layers."""

    attention_norm: torch.Tensor
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear


def load_layers(
    config: ModelConfig,
    tensors: Mapping[str, torch.Tensor],
    make: MakeLinear,
    device: torch.device,
) -> tuple[Layer, ...]:
    """All layers, their linear layers made in the order q/k/v, output, gate/up, down."""
    source = _Source(tensors, make, device)
    return tuple(_load_layer(config, source, f"model.layers.{i}.") for i in range(config.layers))


def take(tensors: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """A tensor by name. Raises CheckpointError when the checkpoint lacks it."""
    try:
        return tensors[name]
    except KeyError:
        raise CheckpointError(
            Path(name), "the checkpoint lacks this tensor", "Fetch the model again"
        ) from None


def _load_layer(config: ModelConfig, source: _Source, at: str) -> Layer:
    qkv = [f"{at}self_attn.{name}_proj" for name in "qkv"]
    mlp = [f"{at}mlp.{name}_proj" for name in ("gate", "up")]
    return Layer(
        attention_norm=source.norm(at + "input_layernorm.weight"),
        qkv=source.projection(qkv, config.attention_bias),
        q_norm=source.norm(at + "self_attn.q_norm.weight") if config.qk_norm else None,
        k_norm=source.norm(at + "self_attn.k_norm.weight") if config.qk_norm else None,
        out=source.projection([at + "self_attn.o_proj"], config.attention_output_bias),
        mlp_norm=source.norm(at + "post_attention_layernorm.weight"),
        gate_up=source.projection(mlp, config.mlp_bias),
        down=source.projection([at + "mlp.down_proj"], config.mlp_bias),
    )


class _Source:
    def __init__(
        self, tensors: Mapping[str, torch.Tensor], make: MakeLinear, device: torch.device
    ) -> None:
        self._tensors = tensors
        self._make = make
        self._device = device

    def norm(self, name: str) -> torch.Tensor:
        return take(self._tensors, name).to(self._device, torch.float32)

    def projection(self, modules: list[str], bias: bool) -> Linear:
        weight = torch.cat([take(self._tensors, f"{module}.weight") for module in modules])
        if not bias:
            return self._make(weight, None)
        biases = [take(self._tensors, f"{module}.bias") for module in modules]
        return self._make(weight, torch.cat(biases))
