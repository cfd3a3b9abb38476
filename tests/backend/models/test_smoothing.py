"""Smoothing changes how numbers are spread over factors, not the function."""

from __future__ import annotations

from pathlib import Path

import torch

from backend.layers.linear import quantise_rows
from backend.loader import load_checkpoint
from backend.models import Decoder, build_decoder
from backend.models.calibration import run_tokens
from backend.models.smoothing import smooth
from backend.runner import Runner
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageTable

IDS = [7, 80, 300, 21, 404, 33, 90, 12] * 5


def logits(decoder: Decoder) -> torch.Tensor:
    config = decoder.config
    shape = KVShape(config.layers, config.kv_heads, config.head_dim)
    runner = Runner(decoder, PagePool(shape, 1, decoder.compute_dtype))
    context = runner.open_context((), [], PageTable(()))
    return runner.logits(runner.extend([context], [IDS])[0])


def test_smoothed_model_is_the_same_function(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    config, tensors = checkpoint.config, checkpoint.tensors
    smoothed = smooth(config, tensors, lambda decoder: run_tokens(decoder, IDS))
    cpu = torch.device("cpu")
    before = logits(Decoder(config, tensors, "float32", cpu))
    after = logits(Decoder(config, smoothed, "float32", cpu))
    torch.testing.assert_close(after, before, atol=1e-3, rtol=1e-3)
    name = "model.layers.1.mlp.down_proj.weight"
    assert not torch.allclose(smoothed[name], tensors[name].float())


def test_int8_model_stays_close(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    cpu = torch.device("cpu")
    exact = logits(build_decoder(checkpoint, "float32", cpu)).log_softmax(-1)
    small = logits(build_decoder(checkpoint, "int8", cpu)).log_softmax(-1)
    divergence = (exact.exp() * (exact - small)).sum(-1).mean()
    assert 0 <= divergence < 0.02


def test_smoothing_helps_against_outliers(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    tensors = {name: checkpoint.tensors[name].float() for name in checkpoint.tensors}
    # One channel of a norm made 100 times larger, as massive activations are.
    norm, gate = "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj"
    tensors[norm][5] *= 100
    smoothed = smooth(checkpoint.config, tensors, lambda decoder: run_tokens(decoder, IDS))
    x = torch.randn(200, tensors[norm].shape[0])

    def error(source: dict[str, torch.Tensor]) -> float:
        activations, weight = x * source[norm], source[gate + ".weight"]
        rows = quantise_rows(activations)
        exact = activations @ weight.t()
        return float((rows.values.float() * rows.scale @ weight.t() - exact).norm() / exact.norm())

    assert error(smoothed) < error(tensors) / 2
