"""Seeded lies: how many the answer checks mark, and how many true answers they mark by mistake.

    python -m scripts.bench_checks --data FILE... --seed N [--answers 200] [--bare] [--show 10]

FILE is a question set in any form that `fineprint eval` reads. Answers are made of its gold
answers, half of them English and half Chinese where the sets hold both: `--answers` with exactly
one figure, date, unit, currency, negation, duration, percentage or clause number changed, and as
many true ones, most of them with the value in another correct form. Prints one JSON object; with
--show the answers that the checks got wrong are told on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.corruption.measuring import Outcome, check, table, total
from eval.corruption.statements import Gold, Maker, golds
from eval.datasets.forms import open_dataset


def measure(sources: Sequence[Gold], seed: int, answers: int, show: int = 0) -> dict[str, Any]:
    """Counts for one seed."""
    maker = Maker(sources, seed)
    started = time.perf_counter()
    result: dict[str, Any] = {"seed": seed}
    for name, altered in (("altered", True), ("unaltered", False)):
        outcomes = [check(trial) for trial in maker.trials(answers, altered=altered)]
        made, marked = total(outcomes)
        result[name] = {"made": made, "marked": marked, "by_kind": table(outcomes)}
        for outcome in [outcome for outcome in outcomes if not outcome.right][:show]:
            print(_told(outcome), file=sys.stderr)
    seconds = time.perf_counter() - started
    result["ms_per_answer"] = round(1000 * seconds / (2 * answers), 2)
    return result


def _told(outcome: Outcome) -> str:
    trial = outcome.trial
    what = "NOT MARKED" if trial.altered else "TRUE BUT MARKED"
    notes = "".join(f"\n    {c.kind} {c.text!r}: {c.note}" for c in outcome.checks)
    return (
        f"{what} {trial.kind} {trial.language} {trial.form}: {trial.before!r} -> {trial.after!r}"
        f"\n  answer: {trial.answer}\n  span:   {trial.spans[0]}"
        f"\n  ({len(trial.spans)} spans){notes}\n"
    )


def main() -> None:
    """Reads the arguments and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--answers", type=int, default=200, help="altered and unaltered ones each")
    parser.add_argument("--bare", action="store_true", help="cite the gold span, not its sentence")
    parser.add_argument("--show", type=int, default=0, help="tell so many wrong ones")
    arguments = parser.parse_args()
    sources = [
        gold for path in arguments.data for gold in golds(open_dataset(path), bare=arguments.bare)
    ]
    runs = [measure(sources, seed, arguments.answers, arguments.show) for seed in arguments.seed]
    print(json.dumps({"sets": [path.name for path in arguments.data], "golds": len(sources),
                      "runs": runs}, ensure_ascii=False))  # fmt: skip


if __name__ == "__main__":
    main()
