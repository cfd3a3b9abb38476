"""The decoder shared by the Llama-shaped families (llama, mistral, qwen2, qwen3).

Embedding, then per layer: RMS norm, q/k/v, attention, output projection, RMS norm, SwiGLU, each
added to the residual stream; a last norm and the head. It knows no cache and no positions: `attend`
gets q, k and v before rotation and returns what attention read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

from backend.config import ModelConfig
from backend.errors import CheckpointError
from backend.layers.linear import Linear, Precision, make_head, make_linear

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""attend(layer, q [n, heads, d], k [n, kv_heads, d], v [n, kv_heads, d]) -> [n, heads * d]."""

MakeLinear = Callable[[torch.Tensor, torch.Tensor | None], Linear]
"""A linear layer from weight [out, in] and bias [out] or None."""


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: torch.Tensor
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class Decoder:
    """Weights of one model in one precision on one device.

    The residual stream is float32 on a CPU (it is small beside the products) and the weights'
    dtype on a GPU.
    """

    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, torch.Tensor],
        precision: Precision,
        device: torch.device,
        *,
        make: MakeLinear | None = None,
    ) -> None:
        """`make` builds a linear layer from weight and bias, in place of the usual one for the
        precision and device."""
        self.config = config
        self.device = device
        self.compute_dtype = torch.bfloat16 if precision == "int8" else getattr(torch, precision)
        self._stream_dtype = torch.float32 if device.type == "cpu" else self.compute_dtype
        source = _Source(tensors, device, make or partial(make_linear, precision, device))
        self._embedding = source.plain("model.embed_tokens.weight").to(device, self.compute_dtype)
        self._layers = tuple(self._load_layer(source, i) for i in range(config.layers))
        self._norm = source.norm("model.norm.weight")
        head = "model.embed_tokens.weight" if config.tie_embeddings else "lm_head.weight"
        self._head = make_head(source.plain(head), precision, device)

    def _load_layer(self, source: _Source, index: int) -> _Layer:
        config, at = self.config, f"model.layers.{index}."
        qkv = [f"{at}self_attn.{name}_proj" for name in "qkv"]
        mlp = [f"{at}mlp.{name}_proj" for name in ("gate", "up")]
        out, down = f"{at}self_attn.o_proj", f"{at}mlp.down_proj"
        return _Layer(
            attention_norm=source.norm(at + "input_layernorm.weight"),
            qkv=source.projection(qkv, config.attention_bias),
            q_norm=source.norm(at + "self_attn.q_norm.weight") if config.qk_norm else None,
            k_norm=source.norm(at + "self_attn.k_norm.weight") if config.qk_norm else None,
            out=source.projection([out], config.attention_output_bias),
            mlp_norm=source.norm(at + "post_attention_layernorm.weight"),
            gate_up=source.projection(mlp, config.mlp_bias),
            down=source.projection([down], config.mlp_bias),
        )

    def forward(
        self, token_ids: torch.Tensor, attend: Attend, *, cache_only: bool = False
    ) -> torch.Tensor:
        """Hidden states [n, hidden] after the last norm, for token ids [n].

        With `cache_only` the last layer ends with its call of `attend`: reading needs no more than
        keys and values, and the result means nothing.
        """
        config = self.config
        heads, kv_heads, width = config.heads, config.kv_heads, config.head_dim
        stream = self._embedding[token_ids].to(self._stream_dtype)
        for index, layer in enumerate(self._layers):
            qkv = layer.qkv(self._rms(stream, layer.attention_norm))
            qkv = qkv.view(-1, heads + 2 * kv_heads, width)
            q, k, v = qkv.split((heads, kv_heads, kv_heads), 1)
            if layer.q_norm is not None and layer.k_norm is not None:
                q, k = self._rms(q, layer.q_norm), self._rms(k, layer.k_norm)
            read = attend(index, q, k, v)
            if cache_only and index == config.layers - 1:
                break
            stream = stream + layer.out(read)
            gate, up = layer.gate_up(self._rms(stream, layer.mlp_norm)).chunk(2, -1)
            stream = stream + layer.down(functional.silu(gate) * up)
        return self._rms(stream, self._norm)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocab] in float32 for hidden states [n, hidden]."""
        return self._head(hidden).float()

    def _rms(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        exact = x.float()
        scale = torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.config.rms_eps)
        return (exact * scale * weight).to(x.dtype)


class _Source:
    """Takes tensors out of a checkpoint by name and turns them into layers."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], device: torch.device, make: MakeLinear
    ) -> None:
        self._tensors = tensors
        self._device = device
        self._make = make

    def plain(self, name: str) -> torch.Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise CheckpointError(
                Path(name), "the checkpoint lacks this tensor", "Fetch the model again"
            ) from None

    def norm(self, name: str) -> torch.Tensor:
        return self.plain(name).to(self._device, torch.float32)

    def projection(self, modules: list[str], bias: bool) -> Linear:
        weight = torch.cat([self.plain(f"{module}.weight") for module in modules])
        if not bias:
            return self._make(weight, None)
        return self._make(weight, torch.cat([self.plain(f"{module}.bias") for module in modules]))
