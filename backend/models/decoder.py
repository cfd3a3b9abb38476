"""The decoder shared by all families.

Embedding, then per layer: RMS norm, q/k/v, attention, output projection, RMS norm, MLP, each
added to the residual stream; a last norm and the head. What is in a layer is up to its family. It
knows no cache and no positions: `attend` gets q, k and v before rotation and returns what attention
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch

from backend.config import ModelConfig
from backend.layers.linear import FewRows, LinearFormat, Precision, head_rows, make_linear
from backend.layers.weight_only import make_weight_only
from backend.models.latent import load_latent_layers
from backend.models.layers import DecoderLayer, MakeLinear, Norm, TensorSource, load_layers, take
from backend.ops.add_norm import Implementation

Attend = Callable[[int, torch.Tensor, torch.Tensor], torch.Tensor]
"""attend(layer, qk [n, heads + kv_heads, d], v [n, kv_heads, d]) -> [n, heads * d]. q and k come
together because both are rotated. With latent attention there is one key-value head, v is its first
`rank` channels, and the result is [n, heads * rank]."""

WIDE_ROWS = 16
"""From this many tokens at once the products are bound by arithmetic, below by reading weights."""


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
        smoothed: Mapping[str, torch.Tensor] | None = None,
        make: MakeLinear | None = None,
        linear_format: LinearFormat = "dense",
        few_rows: FewRows = "library",
    ) -> None:
        """With `precision` int8, many tokens at once go through int8 layers of `smoothed` (the
        same function, see `backend.models.smoothing`) and few through weight-only layers of
        `tensors`; latent families have the latter alone. `make` builds a linear layer in place of
        the usual one. The head is no layer: its product is never in FP8."""
        self.config = config
        self.device = device
        self.compute_dtype = torch.bfloat16 if precision == "int8" else getattr(torch, precision)
        self._stream_dtype = torch.float32 if device.type == "cpu" else self.compute_dtype
        self._impl: Implementation = "triton" if device.type == "cuda" else "reference"
        usual = partial(make_linear, precision, device, form=linear_format, few_rows=few_rows)
        narrow = make_weight_only if precision == "int8" else usual
        self._narrow = self._load(tensors, make or narrow)
        self._wide = self._narrow
        if precision == "int8" and config.latent is None:
            self._wide = self._load(smoothed or tensors, make or usual)
        embedding = take(tensors, "model.embed_tokens.weight")
        head = embedding if config.tie_embeddings else take(tensors, "lm_head.weight")
        self._embedding = embedding.to(device, self.compute_dtype)
        norm = take(tensors, "model.norm.weight").to(device, torch.float32)
        self._norm = Norm(norm, config.rms_eps, self._impl)
        rows = head_rows(linear_format, few_rows)
        plain = partial(make_linear, precision, device, few_rows=rows)
        self._head = (make_weight_only if precision == "int8" else plain)(head, None)

    def forward(
        self, token_ids: torch.Tensor, attend: Attend, *, cache_only: bool = False
    ) -> torch.Tensor:
        """Hidden states [n, hidden] after the last norm, for token ids [n].

        With `cache_only` the last layer ends with its call of `attend`: reading needs no more than
        keys and values, and the result means nothing.
        """
        last = self.config.layers - 1
        stream = self._embedding[token_ids].to(self._stream_dtype)
        layers = self._wide if len(token_ids) >= WIDE_ROWS else self._narrow
        given: torch.Tensor | None = None
        for index, layer in enumerate(layers):
            stream, qk, v = layer.queries(stream, given)
            read = attend(index, qk, v)
            if cache_only and index == last:
                return stream
            stream, given = layer.feed(stream, layer.out(read))
        return self._norm(stream, given)[1]

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocab] as the head's product leaves them, for hidden states [n, hidden]."""
        return self._head(hidden)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The same in float32."""
        return self.head(hidden).float()

    def _load(
        self, tensors: Mapping[str, torch.Tensor], make: MakeLinear
    ) -> tuple[DecoderLayer, ...]:
        source = TensorSource(tensors, make, self.device, self.compute_dtype, self._impl)
        latent = self.config.latent
        if latent is None:
            return load_layers(self.config, source)
        return load_latent_layers(self.config, latent, source)
