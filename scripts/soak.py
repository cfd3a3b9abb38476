"""Requests that leave at random points, and many askers for minutes: does anything stay behind?

    python -m scripts.soak --cancels 1000 --askers 64 --minutes 10 --out soak.json

A server of its own on an empty folder; `--documents` contracts are made from the English sample,
each with a salt in every clause so that none shares KV with another. First the cancels, in batches:
each request is left after a random time up to `--patience` seconds, in one batch by closing the
connection of a JSON request, in the next by closing a stream, in the third by the cancel address;
after a batch the time until no answer is running or waiting is taken, and in the end the KV pages
in use are compared with those before. Then the askers: status codes, 429 with and without
Retry-After, how many answers the asker with the fewest had and the one with the most, memory of the
server (RSS) every five seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil

from app.cli.reporting import note
from eval.environment import environment
from scripts.kv_restart import served, take_in

SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "supply-agreement.en.pdf"
QUESTIONS = (
    "Within how many days shall the Buyer pay each correct invoice?",
    "What is the governing law?",
    "How can the Buyer end this Agreement for convenience?",
    "What limits the Supplier's liability?",
    "Which arbitration institution is named?",
    "How long is the Initial Term?",
)
BATCH = 20
WAYS = ("json", "stream", "cancel")
"""How a batch leaves."""
ANSWERS = "/api/v1/answers"


def contracts(folder: Path, count: int) -> list[Path]:
    """Texts like the sample, none of whose blocks is another's."""
    from retrieval.parse import parse_file

    text = parse_file(SAMPLE, SAMPLE.name).text
    made = []
    for number in range(count):
        salt = f" (copy {number:03d})"
        body = "\n".join(line + salt if line.endswith(".") else line for line in text.split("\n"))
        path = folder / f"contract-{number:03d}.txt"
        path.write_text(f"Contract {number:03d}\n\n{body}", encoding="utf-8")
        made.append(path)
    return made


def metrics(http: httpx.Client) -> dict[str, float]:
    """Every value of /metrics without labels."""
    lines = http.get("/metrics").text.splitlines()
    pairs = [line.split(" ") for line in lines if line and line[0] != "#" and "{" not in line]
    return {name: float(value) for name, value in pairs}


def busy(http: httpx.Client) -> float:
    """Answers that are running or waiting."""
    now = metrics(http)
    return now["fineprint_answers_running"] + now["fineprint_answers_waiting"]


def leave(
    http: httpx.Client, documents: list[str], rng: random.Random, patience: float, way: str
) -> str:
    """One request that is left at a random point; how it ended."""
    body = {"question": rng.choice(QUESTIONS), "document_ids": [rng.choice(documents)]}
    delay = rng.uniform(0.0, patience)
    if way == "json":
        try:
            http.post(ANSWERS, json=body, timeout=delay + 0.001)
        except httpx.TimeoutException:
            return "left"
        return "finished"
    started = time.monotonic()
    with http.stream("POST", ANSWERS, json=body | {"stream": True}) as reply:
        if reply.status_code != 200:
            return str(reply.status_code)
        for _ in reply.iter_lines():
            if time.monotonic() - started >= delay:
                if way == "cancel":
                    http.post(f"{reply.headers['location']}/cancel")
                    return "cancelled"
                return "left"
    return "finished"


def cancels(url: str, documents: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Leaves `args.cancels` requests and looks what stays."""
    rng = random.Random(args.seed)
    ends: Counter[str] = Counter()
    settled: dict[str, list[float]] = {way: [] for way in WAYS}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
        before = metrics(http)["fineprint_kv_pages_used"]
        with ThreadPoolExecutor(BATCH) as pool:
            for start in range(0, args.cancels, BATCH):
                way = WAYS[start // BATCH % len(WAYS)]
                seeds = [rng.random() for _ in range(min(BATCH, args.cancels - start))]
                jobs = [
                    pool.submit(leave, http, documents, random.Random(one), args.patience, way)
                    for one in seeds
                ]
                ends.update(job.result() for job in jobs)
                left = time.monotonic()
                while busy(http) and time.monotonic() - left < 60:
                    time.sleep(0.02)
                settled[way].append(time.monotonic() - left)
        after = metrics(http)["fineprint_kv_pages_used"]
    return {
        "requests": args.cancels,
        "ends": dict(ends),
        "settled_s": {
            way: {"batches": len(times), "p50": statistics.median(times), "max": max(times)}
            for way, times in settled.items()
            if times
        },
        "pages_before": before,
        "pages_after": after,
    }


def askers(url: str, pid: int, documents: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """`args.askers` at once for `args.minutes`."""
    end = time.monotonic() + 60 * args.minutes
    statuses: Counter[str] = Counter()
    waits: list[float] = []
    answered = Counter({number: 0 for number in range(args.askers)})
    lock = threading.Lock()
    memory: list[int] = []

    def ask_on(number: int) -> None:
        rng = random.Random(args.seed + number)
        with httpx.Client(base_url=url, timeout=600, trust_env=False) as http:
            while time.monotonic() < end:
                body = {"question": rng.choice(QUESTIONS), "document_ids": [rng.choice(documents)]}
                started = time.monotonic()
                reply = http.post(ANSWERS, json=body)
                name = str(reply.status_code)
                if reply.status_code == 429:
                    retry = reply.headers.get("retry-after")
                    name += " with Retry-After" if retry else " without Retry-After"
                    time.sleep(float(retry or 1) * rng.uniform(0.5, 1.0))
                with lock:
                    statuses[name] += 1
                    if reply.status_code == 200:
                        answered[number] += 1
                        waits.append(time.monotonic() - started)

    server = psutil.Process(pid)
    threads = [threading.Thread(target=ask_on, args=(number,)) for number in range(args.askers)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        memory.append(server.memory_info().rss)
        time.sleep(5)
    third = max(1, len(memory) // 3)
    waits.sort()
    return {
        "askers": args.askers,
        "minutes": args.minutes,
        "statuses": dict(statuses),
        "answer_s": {
            "p50": waits[len(waits) // 2],
            "p95": waits[int(0.95 * len(waits))],
            "max": waits[-1],
        },
        "answers_per_asker": {"min": min(answered.values()), "max": max(answered.values())},
        "rss_mb": {
            "second_third": sum(memory[third : 2 * third]) / third / 1e6,
            "last_third": sum(memory[2 * third :]) / max(1, len(memory) - 2 * third) / 1e6,
            "all": [round(value / 1e6) for value in memory],
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cancels", type=int, default=1000)
    parser.add_argument("--patience", type=float, default=2.0)
    parser.add_argument("--askers", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with served(data, {"FINEPRINT_DEVICE": args.device}) as (url, _):
            pid = next(
                one.pid
                for one in psutil.Process().children(recursive=True)
                if "serve" in one.cmdline()
            )
            with httpx.Client(base_url=url, timeout=600, trust_env=False) as http:
                documents = [
                    take_in(http, path)[0] for path in contracts(Path(folder), args.documents)
                ]
            note(f"{len(documents)} documents are read")
            record: dict[str, Any] = {
                "bench": "soak",
                "command": f"python -m scripts.soak {' '.join(sys.argv[1:])}",
                "environment": environment(),
                "documents": args.documents,
            }
            if args.cancels:
                record["cancels"] = cancels(url, documents, args)
                note(json.dumps(record["cancels"]))
            if args.minutes:
                record["askers"] = askers(url, pid, documents, args)
                note(json.dumps(record["askers"]))
    if args.out:
        args.out.write_text(json.dumps(record, indent=1, default=str), encoding="utf-8")
    print(json.dumps(record, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
