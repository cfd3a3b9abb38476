"""llama.cpp through llama-cpp-python; runs in any environment that has it.

Prints one JSON object. Usage: python llama_cpp.py MODEL TEXT_FILE READ_TOKENS
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time

DECODED = 96


def main(model: str, text_file: str, read_tokens: str) -> None:
    """Measure and print."""
    # By name: this file is called like the package.
    sys.path = [entry for entry in sys.path if not entry.endswith("peers")]
    llama_cpp = importlib.import_module("llama_cpp")
    size = int(read_tokens)
    engine = llama_cpp.Llama(
        model_path=model, n_ctx=8192, n_threads=2, n_threads_batch=2, verbose=False
    )
    with open(text_file, encoding="utf-8") as file:
        ids = engine.tokenize(file.read().encode(), add_bos=False, special=False)
    engine.eval(ids[size : size + 512])

    def read(count: int, at: int) -> float:
        engine.reset()
        started = time.perf_counter()
        engine.eval(ids[at : at + count])
        return time.perf_counter() - started

    def decode() -> float:
        token = engine.sample(temp=0.0)
        started = time.perf_counter()
        for _ in range(DECODED):
            engine.eval([token])
            token = engine.sample(temp=0.0)
        return DECODED / (time.perf_counter() - started)

    seconds = read(size, 0)
    long = decode()
    read(512, len(ids) - 512)
    figures = {
        "engine": f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}",
        "read_tokens": size,
        "read_tokens_per_s": size / seconds,
        "decode_at_512_tokens_per_s": decode(),
        "decode_long_context_tokens": size,
        "decode_long_tokens_per_s": long,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
