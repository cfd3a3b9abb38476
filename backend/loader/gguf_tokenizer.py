"""Puts the tokenizer of a GGUF file into the form of a tokenizer.json. It reads no files.

The splitting rules are those of llama.cpp (src/llama-vocab.cpp) for the name in
`tokenizer.ggml.pre`. Without the right one the tokens look fine and are wrong: SmolLM2 without
its digit splitter gives 7,786 tokens instead of 7,694 on one contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_CONTROL, _USER_DEFINED = 3, 4
_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": True,
}
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_FAMILY = {
    "smollm": "digits",
    "default": "gpt2",
    "gpt-2": "gpt2",
    "phi-2": "gpt2",
    "llama3": "llama3",
    "llama-v3": "llama3",
    "llama-bpe": "llama3",
    "qwen2": "qwen2",
    "deepseek-r1-qwen": "qwen2",
}


def tokenizer_spec(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a tokenizer.json for GGUF metadata; ValueError where the kind is unknown."""
    model = fields.get("tokenizer.ggml.model")
    if model != "gpt2":
        raise ValueError(f"its tokenizer model is {model!r}; from GGUF only 'gpt2' (BPE) is read")
    name = fields.get("tokenizer.ggml.pre", "default")
    if name not in _FAMILY:
        raise ValueError(f"its pre-tokenizer {name!r} is none of {', '.join(sorted(_FAMILY))}")
    texts: Sequence[str] = fields["tokenizer.ggml.tokens"]
    kinds: Sequence[int] = fields.get("tokenizer.ggml.token_type", [1] * len(texts))
    merges: Sequence[str] = fields["tokenizer.ggml.merges"]
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": id_,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == _CONTROL,
            }
            for id_, (text, kind) in enumerate(zip(texts, kinds, strict=True))
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": {"type": "NFC"} if _FAMILY[name] == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _splitters(_FAMILY[name])},
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "vocab": {text: id_ for id_, text in enumerate(texts)},
            "merges": [merge.split(" ", 1) for merge in merges],
            "ignore_merges": _FAMILY[name] == "llama3",
            "byte_fallback": False,
            "fuse_unk": False,
            "unk_token": None,
            "dropout": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
        },
    }


def _splitters(family: str) -> list[dict[str, Any]]:
    if family == "gpt2":
        return [_BYTE_LEVEL]
    if family == "digits":
        return [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL]
    pattern = _LLAMA3_SPLIT if family == "llama3" else _QWEN2_SPLIT
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return [split, {**_BYTE_LEVEL, "use_regex": False}]
