"""Times one load by three accounts: a public load client (guidellm), a plain httpx client, and the
server's own metrics, taken before and after each of the two.

Needs a served Fineprint that nobody else uses, guidellm in an environment of its own, and a
tokenizer folder (scripts/tokenizer_folder.py). Writes one JSON object.

    python scripts/load_clients.py --guidellm VENV/bin/guidellm --tokenizer FOLDER --out FILE.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import tokenizers

from eval.environment import environment

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
_SAMPLE = re.compile(
    r"^(fineprint_completion\w*(?:_sum|_count)(?:\{[^}]*\})?) (\S+)$", re.MULTILINE
)
_WORDS = ("supply", "notice", "party", "term", "price", "goods", "shall", "days", "order", "law")


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: `requests` of `prompt_tokens` (about), `output_tokens` each, `streams` at once."""

    address: str
    prompt_tokens: int
    output_tokens: int
    streams: int
    requests: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--guidellm", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--output-tokens", type=int, default=16)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    shapes = [(CHAT, 512, 1), (CHAT, 512, 4), (TEXT, 512, 4), (CHAT, 2048, 1), (CHAT, 2048, 4)]
    with httpx.Client(base_url=arguments.url, trust_env=False, timeout=600) as client:
        model = client.get("/v1/models").raise_for_status().json()["data"][0]["id"]
        results: list[Any] = []
        record = {
            "bench": "load-clients",
            "environment": environment(),
            "config": {"model": model, "guidellm": version(arguments.guidellm)},
            "rounds": 1,
            "results": results,
            "command": "python scripts/load_clients.py --guidellm VENV/bin/guidellm "
            "--tokenizer FOLDER --out FILE.json",
        }
        for address, length, streams in shapes:
            cell = Cell(address, length, arguments.output_tokens, streams, arguments.requests)
            results.append(measure(client, cell, model, arguments))
            # After every load, so that a run that is stopped leaves what it has.
            arguments.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def measure(client: httpx.Client, cell: Cell, model: str, arguments: argparse.Namespace) -> Any:
    """The cell by every account. The plain client goes first; the prompts are different ones, and
    plain prompts are never reused."""
    told = {}
    for name, run in (("plain", run_plain), ("guidellm", run_guidellm)):
        before = scrape(client)
        seen = run(client, cell, model, arguments)
        told[name] = {"client": seen, "server": between(before, scrape(client))}
    return {"cell": asdict(cell), **told}


def run_plain(
    client: httpx.Client, cell: Cell, model: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.tokenizer / "tokenizer.json"))
    numbers = random.Random(cell.prompt_tokens + cell.streams)
    bodies = [
        body_of(cell, model, words(tokenizer, cell.prompt_tokens, numbers))
        for _ in range(cell.requests)
    ]
    with ThreadPoolExecutor(cell.streams) as pool:
        seen = list(pool.map(lambda body: one(client, cell.address, body), bodies))
    return {
        "ttft_ms": spread([item["ttft_ms"] for item in seen]),
        "itl_ms": spread([item["itl_ms"] for item in seen]),
        "engine_ttft_ms": spread([item["engine_ttft_ms"] for item in seen]),
        "ttft_over_engine_ms": spread([i["ttft_ms"] - i["engine_ttft_ms"] for i in seen]),
        "prompt_tokens": statistics.mean(item["prompt_tokens"] for item in seen),
        "output_tokens": statistics.mean(item["output_tokens"] for item in seen),
    }


def one(client: httpx.Client, address: str, body: dict[str, Any]) -> dict[str, float]:
    """One streamed request, timed by chunks with text in them."""
    times: list[float] = []
    last: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    started = time.perf_counter()
    with client.stream("POST", address, json=body) as reply:
        reply.raise_for_status()
        for line in reply.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                last = choice
                if choice.get("text") or choice.get("delta", {}).get("content"):
                    times.append(time.perf_counter())
    tokens = usage["completion_tokens"]
    return {
        "ttft_ms": 1000 * (times[0] - started),
        "itl_ms": 1000 * (times[-1] - times[0]) / (tokens - 1),
        "engine_ttft_ms": last["timings"]["ttft_ms"],
        "prompt_tokens": usage["prompt_tokens"],
        "output_tokens": tokens,
    }


def body_of(cell: Cell, model: str, text: str) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": text}]} if cell.address == CHAT else {}
    return {
        "model": model,
        "max_tokens": cell.output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        **(asked or {"prompt": text}),
    }


def words(tokenizer: tokenizers.Tokenizer, length: int, numbers: random.Random) -> str:
    """Random words of about `length` tokens."""
    text = " ".join(numbers.choices(_WORDS, k=length))
    ids = tokenizer.encode(text, add_special_tokens=False).ids[:length]
    return str(tokenizer.decode(ids))


def run_guidellm(
    _: httpx.Client, cell: Cell, model: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        command = [
            str(arguments.guidellm), "run", "--disable-console",
            "--backend", f"kind=openai_http,target={arguments.url},model={model},"
            f"request_format={cell.address}",
            "--profile", f"kind=concurrent,streams={cell.streams}",
            "--constraint", f"kind=max_requests,count={cell.requests}",
            "--data", f"kind=synthetic_text,prompt_tokens={cell.prompt_tokens},"
            f"output_tokens={cell.output_tokens}",
            "--tokenizer", f"kind=huggingface_auto,model={arguments.tokenizer.resolve()}",
            "--output", f"kind=json,path={out}",
        ]  # fmt: skip
        # The tokenizer lies here: nothing is to be looked up.
        offline = {"HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, env=os.environ | offline, stdout=sys.stderr)
        metrics = json.loads(out.read_text(encoding="utf-8"))["benchmarks"][0]["metrics"]
    return {
        "requests": metrics["request_totals"],
        "ttft_ms": told(metrics["time_to_first_token_ms"]),
        "itl_ms": told(metrics["inter_token_latency_ms"]),
        "prompt_tokens": metrics["prompt_token_count"]["successful"]["mean"],
        "output_tokens": metrics["output_token_count"]["successful"]["mean"],
    }


def told(metric: dict[str, Any]) -> dict[str, float]:
    """Of guidellm's summary, what `spread` says of ours."""
    done = metric["successful"]
    return {"mean": done["mean"], "p50": done["median"], "p95": done["percentiles"]["p95"]}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, median and the value that 95% do not exceed."""
    ranked = sorted(values)
    p95 = ranked[min(len(ranked) - 1, -(-95 * len(ranked) // 100) - 1)]
    return {"mean": statistics.mean(ranked), "p50": statistics.median(ranked), "p95": p95}


def scrape(client: httpx.Client) -> dict[str, float]:
    text = client.get("/metrics").raise_for_status().text
    return {name: float(value) for name, value in _SAMPLE.findall(text)}


def between(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Means of the requests between two scrapes, in milliseconds."""

    def mean(family: str, labels: str = "") -> float:
        total, count = (
            after.get(f"{family}_{part}{labels}", 0.0) - before.get(f"{family}_{part}{labels}", 0.0)
            for part in ("sum", "count")
        )
        return 1000 * total / count

    ttft = "fineprint_completion_ttft_seconds"
    return {
        "requests": after[f'{ttft}_count{{level="engine"}}']
        - before.get(f'{ttft}_count{{level="engine"}}', 0.0),
        "engine_ttft_ms": mean(ttft, '{level="engine"}'),
        "gateway_ttft_ms": mean(ttft, '{level="gateway"}'),
        "engine_itl_ms": mean("fineprint_completion_seconds_per_token"),
    }


def version(guidellm: Path) -> str:
    shown = subprocess.run([str(guidellm), "--version"], capture_output=True, text=True, check=True)
    return shown.stdout.strip()


if __name__ == "__main__":
    main()
