"""Models for tests: a tiny random one made on the spot, and the default model if it is cached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from app.models import find_model
from app.settings import DEFAULT_MODEL, load_settings

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LINES = [
    "The Supplier shall deliver the Goods within 30 days of the Order.",
    "Either party may terminate this Agreement on 90 days' written notice.",
    "The total price is EUR 1,250,000.00, payable in 12 instalments.",
    "第十二条 乙方应当在收到货物后三十日内支付全部价款。",
    "本合同自双方签字盖章之日起生效，有效期为五年。",
    "违约方应当向守约方支付合同总价百分之十的违约金。",
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer() -> tokenizers.Tokenizer:
    """A byte-level BPE over a few lines, with SmolLM2's splitting and control tokens."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(LINES * 3, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a random Llama of odd sizes (GQA 6/2, head_dim 10, 3 layers)."""
    folder = tmp_path_factory.mktemp("tiny_llama")
    tokenizer = train_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=60,
        intermediate_size=84,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1234)
        LlamaForCausalLM(config).save_pretrained(folder)
    names = {"bos_token": CONTROL[1], "eos_token": CONTROL[2], "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The default model's GGUF; skips when `fineprint models pull` has not been run."""
    settings = load_settings()
    path = find_model(DEFAULT_MODEL, settings.cache_dir)
    if path is None:
        pytest.skip(f"no default model in {settings.cache_dir}; run: fineprint models pull")
    return path
