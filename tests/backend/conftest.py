"""Tiny random models with latent attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, DeepseekV2Config, DeepseekV3Config, PreTrainedModel

LATENT_SIZES: dict[str, Any] = {
    "vocab_size": 520,
    "hidden_size": 60,
    "intermediate_size": 84,
    "moe_intermediate_size": 28,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "kv_lora_rank": 24,
    "q_lora_rank": 36,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 14,
    "v_head_dim": 10,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""Odd sizes: 6 heads of 14 + 8 channels and values of 10, a latent of 24 + 8."""

MakeLatent = Callable[..., PreTrainedModel]


def save_latent(family: str, folder: Path, tokenizer: Path, **changes: Any) -> PreTrainedModel:
    """A random model of the family in `folder`, beside the tokenizer of another one."""
    kind = DeepseekV2Config if family == "deepseek_v2" else DeepseekV3Config
    if family == "deepseek_v3":
        changes = {"n_group": 4, "topk_group": 2, **changes}
    config = kind(**{**LATENT_SIZES, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(31)
        model = AutoModelForCausalLM.from_config(config).eval()
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                torch.nn.init.normal_(parameter, 1.0 if "norm" in name else 0.0, 0.3)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.normal_(0.0, 0.2)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    return model


@pytest.fixture
def make_latent(tiny_llama: Path, tmp_path: Path) -> MakeLatent:
    """Makes a random model (family, settings) in `tmp_path`."""

    def make(family: str, **changes: Any) -> PreTrainedModel:
        return save_latent(family, tmp_path, tiny_llama, **changes)

    return make


@pytest.fixture(scope="session")
def tiny_latent(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a random deepseek_v3."""
    folder = tmp_path_factory.mktemp("tiny_latent")
    save_latent("deepseek_v3", folder, tiny_llama)
    return folder
