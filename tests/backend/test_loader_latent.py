"""Folders of the families with latent attention and experts: what is read, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from backend.config import ExpertsShape, LatentShape
from backend.errors import CheckpointError
from backend.layers.rope import inverse_frequencies
from backend.loader import load_checkpoint
from kvstore.types import KVShape

V2 = {
    "model_type": "deepseek_v2",
    "topk_method": "group_limited_greedy",
    "norm_topk_prob": False,
}


@pytest.fixture
def folder(tiny_latent: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(tiny_latent, tmp_path / "model"))


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    raw = {**json.loads(path.read_text("utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in raw.items() if v != "absent"}), "utf-8")


def test_shapes_and_weights(tiny_latent: Path) -> None:
    checkpoint = load_checkpoint(tiny_latent)
    config = checkpoint.config
    assert (config.family, config.heads, config.kv_heads) == ("deepseek_v3", 6, 1)
    assert (config.head_dim, config.rotated_channels) == (32, 8)
    assert config.kv_shape == KVShape(3, 1, 32, latent=24)
    assert config.latent == LatentShape(
        rank=24, rotated=8, unrotated=14, value=10, query_rank=36, scale=22**-0.5, interleaved=True
    )
    assert config.experts == ExpertsShape(
        dense_layers=1, count=8, chosen=3, width=28, shared_width=56, scoring="sigmoid",
        groups=4, chosen_groups=2, normalised=True, factor=2.5,
    )  # fmt: skip
    stored = load_file(tiny_latent / "model.safetensors")
    assert set(checkpoint.tensors) == set(stored)
    for name, tensor in checkpoint.tensors.items():
        assert torch.equal(tensor, stored[name]), name


def test_yarn_as_the_published_checkpoints_write_it(folder: Path) -> None:
    yarn = {
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32,
        "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707,
    }  # fmt: skip
    change_config(folder, rope_parameters="absent", rope_theta=10000, rope_scaling=yarn)
    config = load_checkpoint(folder).config
    magnitude = 0.1 * 0.707 * math.log(40) + 1
    assert config.latent is not None
    assert config.latent.scale == pytest.approx(22**-0.5 * magnitude**2)
    # What is in the scale is not in the tables too.
    frequencies, factor = inverse_frequencies(config)
    assert (len(frequencies), factor) == (4, 1.0)


def test_layers_that_predict_further_tokens_are_left_alone(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.3.eh_proj.weight"] = torch.zeros(60, 120)
    save_file(weights, folder / "model.safetensors")
    assert "model.layers.3.eh_proj.weight" not in load_checkpoint(folder).tensors


def test_a_family_without_experts(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    for layer in (1, 2):
        for name in ("gate", "up", "down"):
            part = f"mlp.{name}_proj.weight"
            weights[f"model.layers.{layer}.{part}"] = weights[f"model.layers.0.{part}"].clone()
    save_file(weights, folder / "model.safetensors")
    change_config(folder, n_routed_experts=None)
    checkpoint = load_checkpoint(folder)
    assert checkpoint.config.experts is None
    assert not any("experts" in name for name in checkpoint.tensors)


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"kv_lora_rank": "absent"}, "lacks kv_lora_rank"),
        ({"kv_lora_rank": 0}, "contradict"),
        ({"qk_rope_head_dim": 7}, "contradict"),
        ({"q_lora_rank": 0}, "contradict"),
        ({"v_head_dim": None}, "makes no sense"),
        ({"v_head_dim": 11}, "kv_b_proj.weight has shape"),
        ({"num_experts_per_tok": 0}, "contradict"),
        ({"num_experts_per_tok": 5}, "contradict"),
        ({"n_group": 3}, "contradict"),
        ({"n_group": 8}, "contradict"),
        ({"topk_group": 5}, "contradict"),
        ({"n_routed_experts": 10**9}, "contradict"),
        ({"n_routed_experts": 12}, "mlp.gate.weight has shape"),
        ({"first_k_dense_replace": 0}, "layers.0.mlp.gate.weight is missing"),
        ({"moe_layer_freq": 2}, "moe_layer_freq of 2 is not supported"),
        ({"scoring_func": "softmax"}, "scoring_func of 'softmax'.*deepseek_v3.*DeepSeek-V2"),
        ({"topk_method": "greedy"}, "topk_method of 'greedy'"),
        ({**V2, "norm_topk_prob": True}, "norm_topk_prob of True.*deepseek_v2"),
        ({**V2, "topk_method": "noaux_tc"}, "topk_method of 'noaux_tc'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantised by another"),
        ({"model_type": "deepseek_v4"}, "qwen3, deepseek_v2, deepseek_v3"),
    ],
)
def test_configs_that_can_not_be_run(folder: Path, change: dict[str, Any], pattern: str) -> None:
    change_config(folder, **change)
    with pytest.raises(CheckpointError, match=pattern) as caught:
        load_checkpoint(folder)
    assert str(folder) in str(caught.value) and caught.value.remedy


def test_groups_of_one_expert_are_fine_where_the_best_one_counts(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    corrections = [name for name in weights if name.endswith("correction_bias")]
    save_file(
        {name: weights[name] for name in weights if name not in corrections},
        folder / "model.safetensors",
    )
    change_config(folder, **V2, n_group=8, topk_group=5)
    experts = load_checkpoint(folder).config.experts
    assert experts is not None and (experts.groups, experts.scoring) == (8, "softmax")
