"""Models with latent attention and experts against transformers on the same weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from backend.layers.linear import Precision
from backend.loader import load_checkpoint
from backend.models import build_decoder
from backend.models.latent import half_split
from backend.runner import Runner
from kvstore.pool import PagePool
from kvstore.types import PageTable

YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "mscale": 1.3,
    "mscale_all_dim": 0.7,
}
DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}
LIMITED = {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2}
IDS = torch.randint(0, 520, (150,), generator=torch.Generator().manual_seed(3))


def make_runner(folder: Path, precision: Precision = "float32") -> Runner:
    decoder = build_decoder(load_checkpoint(folder), precision, torch.device("cpu"))
    return Runner(decoder, PagePool(decoder.config.kv_shape, 1, decoder.compute_dtype))


def our_logits(runner: Runner, chunks: list[int]) -> torch.Tensor:
    context = runner.open_context((), [], PageTable(()))
    rows, first, ids = [], 0, IDS.tolist()
    for size in chunks:
        rows.append(runner.logits(runner.extend([context], [ids[first : first + size]])[0]))
        first += size
    return torch.cat(rows)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("deepseek_v2", {}),
        ("deepseek_v2", {"q_lora_rank": None, "routed_scaling_factor": 3.0}),
        ("deepseek_v2", {**LIMITED, "attention_bias": True, "mlp_bias": True}),
        ("deepseek_v2", {"rope_parameters": YARN, "first_k_dense_replace": 0}),
        ("deepseek_v2", {"first_k_dense_replace": 3}),
        ("deepseek_v3", {}),
        ("deepseek_v3", {"q_lora_rank": None, "norm_topk_prob": False, "attention_bias": True}),
        ("deepseek_v3", {"rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}}),
        ("deepseek_v3", {"rope_interleave": False, "n_group": 1, "topk_group": 1}),
    ],
    ids=[
        "v2", "v2 straight queries", "v2 groups and biases", "v2 yarn", "v2 dense",
        "v3", "v3 straight queries", "v3 yarn", "v3 half-split",
    ],
)  # fmt: skip
def test_logits_equal_transformers(
    family: str,
    changes: dict[str, Any],
    make_latent: Callable[..., PreTrainedModel],
    tmp_path: Path,
) -> None:
    model = make_latent(family, **{"rope_parameters": DEFAULT, **changes})
    with torch.inference_mode():
        expected = model(IDS[None]).logits[0]
    ours = our_logits(make_runner(tmp_path), [1, 63, 70, 16])
    torch.testing.assert_close(ours, expected, atol=2e-4, rtol=1e-4)


def test_weights_in_int8_stay_close(
    make_latent: Callable[..., PreTrainedModel], tmp_path: Path
) -> None:
    """Sizes that the layers of int8 weights take: they want multiples of 64."""
    wide = {"hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 64}
    make_latent("deepseek_v2", **wide, num_attention_heads=4, initializer_range=0.1)
    exact = our_logits(make_runner(tmp_path), [150]).log_softmax(-1)
    small = our_logits(make_runner(tmp_path, "int8"), [150]).log_softmax(-1)
    divergence = (exact.exp() * (exact - small)).sum(-1).mean()
    assert 0 < divergence < 0.02


def test_pairs_are_half_apart_after_the_split() -> None:
    rows = torch.arange(2 * 7)[:, None]
    split = half_split(rows, heads=2, rotated=4).flatten().tolist()
    assert split == [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 12, 11, 13]
