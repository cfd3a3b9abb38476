"""OpenVINO GenAI on the GGUF file; runs in any environment that has it.

Every prompt begins with other words, so that no prefix is found in its cache. Prints one JSON
object. Usage: python openvino_genai.py MODEL TEXT_FILE READ_TOKENS
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys

DECODED = 96


def main(model: str, text_file: str, read_tokens: str) -> None:
    """Measure and print."""
    # By name: this file is called like the package.
    sys.path = [entry for entry in sys.path if not entry.endswith("peers")]
    genai = importlib.import_module("openvino_genai")
    size = int(read_tokens)
    pipe = genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=2)
    tokenizer = pipe.get_tokenizer()
    with open(text_file, encoding="utf-8") as file:
        text = file.read()

    def cut(tokens: int, at: int) -> str:
        """A piece of the text of just about `tokens` tokens."""
        low, high = 0, tokens * 8
        while low < high:
            middle = (low + high + 1) // 2
            count = tokenizer.encode(text[at : at + middle]).input_ids.shape[1]
            low, high = (middle, high) if count <= tokens else (low, middle - 1)
        return text[at : at + low]

    def run(prompt: str) -> tuple[float, float, int]:
        config = genai.GenerationConfig()
        config.max_new_tokens = DECODED
        config.ignore_eos = True
        config.apply_chat_template = False
        metrics = pipe.generate([prompt], config).perf_metrics
        rate = 1e3 / metrics.get_tpot().mean
        return metrics.get_ttft().mean / 1e3, rate, metrics.get_num_input_tokens()

    run(cut(512, len(text) // 2))
    seconds, long, counted = run(cut(size, 0))
    _, short, _ = run(cut(512, len(text) // 3))
    figures = {
        "engine": f"openvino-genai {importlib.metadata.version('openvino-genai')}",
        "read_tokens": counted,
        "read_tokens_per_s": counted / seconds,
        "decode_at_512_tokens_per_s": short,
        "decode_long_context_tokens": counted,
        "decode_long_tokens_per_s": long,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
