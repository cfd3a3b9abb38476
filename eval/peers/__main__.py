"""Runs the engines in turn, round after round, and prints medians and ratios as JSON.

Usage: python -m eval.peers MODEL.gguf TEXT_FILE --peer-python PYTHON [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import torch

from eval.environment import environment

OWN_READ, PEER_READ = 30_000, 8_000
FIGURES = ("read_tokens_per_s", "decode_at_512_tokens_per_s", "decode_long_tokens_per_s")


def measure(command: list[str]) -> dict[str, float | str]:
    """One run of one engine. Raises CalledProcessError when it fails."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float | str] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m eval.peers", description=__doc__)
    parser.add_argument("model", help="the GGUF file that every engine runs")
    parser.add_argument("text", help="a UTF-8 text of more than 31,000 tokens")
    parser.add_argument("--peer-python", required=True, help="Python that has both peers")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    here = Path(__file__).parent
    commands = {
        "fineprint": [sys.executable, "-m", "eval.peers.own", args.model, args.text, str(OWN_READ)],
        "openvino": [args.peer_python, str(here / "openvino_genai.py"), args.model, args.text,
                     str(PEER_READ)],
        "llama.cpp": [args.peer_python, str(here / "llama_cpp.py"), args.model, args.text,
                      str(PEER_READ)],
    }  # fmt: skip
    rounds: dict[str, list[dict[str, float | str]]] = {name: [] for name in commands}
    for _ in range(args.rounds):
        for name, command in commands.items():
            rounds[name].append(measure(command))
            sys.stderr.write(f"{name}: {rounds[name][-1]}\n")
    medians = {
        name: {figure: statistics.median(float(run[figure]) for run in runs) for figure in FIGURES}
        for name, runs in rounds.items()
    }
    ratios = {
        f"{figure} vs {peer}": medians["fineprint"][figure] / medians[peer][figure]
        for peer in ("openvino", "llama.cpp")
        for figure in FIGURES
    }
    machine = environment()
    record = {
        "machine": {name: machine[name] for name in ("processor", "cores", "system")},
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "medians": medians,
        "ratios": ratios,
        "rounds": rounds,
    }
    sys.stdout.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
