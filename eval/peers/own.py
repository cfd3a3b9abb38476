"""Fineprint's engine: reads a long document, decodes at a short prompt and on the long document.

Prints one JSON object. Usage: python -m eval.peers.own MODEL TEXT_FILE READ_TOKENS
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from app.prompt import document_sinks
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.types import DocumentTokens, Request, SamplingParams

DECODED = 96
EVIDENCE_TOKENS = 1536


def decode_rate(engine: Engine, request: Request) -> float:
    """Tokens per second after the first token."""
    last = list(engine.generate(request))[-1]
    if last.timings is None or last.usage is None:
        raise RuntimeError(f"the request failed: {last.error}")
    return (last.usage.completion_tokens - 1) / (last.timings.decode_ms / 1e3)


def main(model: str, text_file: str, read_tokens: str) -> None:
    """Measure and print."""
    engine = Engine.open(EngineConfig(model=Path(model), threads=2))
    try:
        ids = engine.tokenizer.encode(Path(text_file).read_text(encoding="utf-8"))
        size = int(read_tokens)
        sinks = document_sinks(engine.tokenizer)
        warm = DocumentTokens("warm", tuple(ids[size : size + 1024]), engine.split_blocks(1024))
        engine.read(warm).wait()
        document = DocumentTokens(
            "document", tuple(ids[:size]), engine.split_blocks(size), sinks=sinks
        )
        started = time.perf_counter()
        state = engine.read(document).wait()
        seconds = time.perf_counter() - started
        if state.computed_tokens != size:
            raise RuntimeError(f"{state.computed_tokens} of {size} tokens were computed: not cold")
        # Greedy, as the peers are measured; with a temperature nothing is guessed from the prompt.
        greedy = SamplingParams(max_tokens=DECODED, ignore_eos=True)
        sampled = replace(greedy, temperature=1.0, seed=1)
        step = size // 4
        evidence = tuple((i * step, i * step + EVIDENCE_TOKENS // 4) for i in range(4))
        question = tuple(ids[:48])
        short = Request("short", tuple(ids[-512:]), greedy)
        long = Request("long", question, greedy, "document", evidence)
        figures = {
            "engine": "fineprint",
            "precision": engine.settings.resolved_precision(),
            "block_tokens": engine.block_tokens,
            "read_tokens": size,
            "read_tokens_per_s": size / seconds,
            "decode_at_512_tokens_per_s": decode_rate(engine, short),
            "decode_at_512_sampled_tokens_per_s": decode_rate(
                engine, replace(short, sampling=sampled)
            ),
            "decode_long_context_tokens": size,
            "decode_long_tokens_per_s": decode_rate(engine, long),
            "decode_long_sampled_tokens_per_s": decode_rate(
                engine, replace(long, sampling=sampled)
            ),
        }
    finally:
        engine.close()
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
