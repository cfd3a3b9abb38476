"""Our decoder against transformers on the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.runner import Runner
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageTable

SIZES = {
    "vocab_size": 520,
    "hidden_size": 60,
    "intermediate_size": 84,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 128,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}


def make_runner(folder: Path) -> Runner:
    checkpoint = load_checkpoint(folder)
    decoder = Decoder(checkpoint.config, checkpoint.tensors, "float32", torch.device("cpu"))
    config = checkpoint.config
    shape = KVShape(config.layers, config.kv_heads, config.head_dim)
    return Runner(decoder, PagePool(shape, 1, torch.float32))


def our_logits(runner: Runner, ids: list[int], chunks: list[int]) -> torch.Tensor:
    context = runner.open_context((), [], PageTable(()))
    rows, first = [], 0
    for size in chunks:
        rows.append(runner.logits(runner.extend([context], [ids[first : first + size]])[0]))
        first += size
    return torch.cat(rows)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (LlamaConfig(**SIZES, tie_word_embeddings=True), LlamaForCausalLM),
        (LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True), LlamaForCausalLM),
        (LlamaConfig(**SIZES, rope_parameters=LLAMA3), LlamaForCausalLM),
        (LlamaConfig(**SIZES, rope_parameters=YARN), LlamaForCausalLM),
        (LlamaConfig(**SIZES, rope_parameters=LINEAR), LlamaForCausalLM),
        (MistralConfig(**SIZES, sliding_window=None), MistralForCausalLM),
        (Qwen2Config(**SIZES), Qwen2ForCausalLM),
        (Qwen3Config(**SIZES), Qwen3ForCausalLM),
    ],
    ids=["llama", "biases", "llama3", "yarn", "linear", "mistral", "qwen2", "qwen3"],
)
def test_logits_equal_transformers(
    config: PretrainedConfig,
    kind: type[PreTrainedModel],
    tiny_llama: Path,
    tmp_path: Path,
) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = kind(config).eval()
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                torch.nn.init.normal_(parameter, 1.0 if "norm" in name else 0.0, 0.3)
        ids = torch.randint(0, 520, (150,))
    model.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((tiny_llama / name).read_bytes())
    with torch.inference_mode():
        expected = model(ids[None]).logits[0]
    ours = our_logits(make_runner(tmp_path), ids.tolist(), [1, 63, 70, 16])
    torch.testing.assert_close(ours, expected, atol=2e-4, rtol=1e-4)
