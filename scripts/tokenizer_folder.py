"""Writes the tokenizer of a GGUF file as a folder that `transformers.AutoTokenizer` opens.

Load clients count tokens with a Hugging Face tokenizer, and a GGUF file has none beside it.

    python scripts/tokenizer_folder.py MODEL.gguf FOLDER
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from backend.loader.gguf_header import read_header
from backend.loader.gguf_tokenizer import tokenizer_spec


def write(model: Path, folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json of `model` into `folder`."""
    fields = read_header(model).fields
    texts = fields["tokenizer.ggml.tokens"]
    end = fields.get("tokenizer.ggml.eos_token_id")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": None if end is None else texts[end],
        "chat_template": fields.get("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("tokenizer", tokenizer_spec(fields)), ("tokenizer_config", config)):
        text = json.dumps(content, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    write(arguments.model, arguments.folder)
    print(arguments.folder)


if __name__ == "__main__":
    main()
