"""What KV formats cost: likelihood of gold answers in each, question by question.

Retrieval, pages and prompt are those of `fineprint eval run --switch phrase=off`. Blocks are read
once and kept as computed; before a question sees them they go through a format and back, page by
page. With independent reading that is what the format's own pool would give, to the last bit, for a
seventh of the work, and the questions of all formats are the same to the byte. What the formats do
to speed and memory is not seen here.

    python -m eval.kv_formats cuad.jsonl statute_qa.jsonl --limit 200 --out record.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import torch

from app.services import open_engine
from app.settings import load_settings
from backend.engine import Engine
from eval.environment import environment
from eval.runs.engine_answers import EngineAnswerer
from eval.runs.sampling import Wanted, draw_sample
from eval.runs.switches import parse_switches
from eval.statistics import Estimate, estimate
from kvstore.formats import FORMATS, FormatName, PageFormat, Part, page_format
from kvstore.formats.plain import PlainFormat


class SeenThrough(PlainFormat):
    """Rows as they are, shown as `other` would give them back."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__(dtype)
        self.other: PageFormat = PlainFormat(dtype)

    def decode(
        self, cells: torch.Tensor, part: Part, channels: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """See `PageFormat`."""
        return self.other.decode(self.other.encode(cells, part), part, channels, dtype)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Nats per token of one question's gold answer, by format."""

    question: str
    dataset: str
    document: str
    nll: Mapping[FormatName, float]


def rows(engine: Engine, paths: Sequence[Path], limit: int, seed: int) -> list[Row]:
    """Ask the drawn questions that have a gold answer in every format."""
    pool = engine._store.pool
    seen = SeenThrough(pool.dtype)
    pool.format = seen
    others = {name: page_format(name, pool.dtype) for name in FORMATS}
    switches = parse_switches("evidence", ["phrase=off"])
    answerer = EngineAnswerer(engine, "evidence", switches, seed, load_settings().chunk_chars)
    sample = draw_sample(paths, None, Wanted(limit=limit, seed=seed, only="answerable"))
    done: list[Row] = []
    for planned in sample.opened():
        with answerer.opened(planned.document) as session:
            for name, question in planned.questions:
                nll: dict[FormatName, float] = {}
                for form, seen.other in others.items():
                    value = session.reply(question).nll
                    if value is None:
                        break
                    nll[form] = value
                else:
                    done.append(Row(name, planned.dataset, planned.document.doc_id, nll))
                    sys.stderr.write(f"{len(done)} of {len(sample.listed)}: {name} {nll}\n")
    return done


def summary(done: Sequence[Row], seed: int) -> dict[str, dict[str, object]]:
    """Means by format, and the paired differences to `auto` with their intervals, resampled by
    documents."""
    groups = [(row.dataset, row.document) for row in done]
    table: dict[str, dict[str, object]] = {}
    for form in FORMATS:
        level = estimate([row.nll[form] for row in done], groups, seed=seed)
        change = estimate([row.nll[form] - row.nll["auto"] for row in done], groups, seed=seed)
        table[form] = {"nll": _rounded(level), "to_auto": _rounded(change)}
    return table


def _rounded(found: Estimate | None) -> dict[str, float | int | None] | None:
    if found is None:
        return None
    return {
        name: round(value, 5) if isinstance(value, float) else value
        for name, value in dataclasses.asdict(found).items()
    }


def main() -> None:
    """Measure and write one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m eval.kv_formats", description=__doc__)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=0, help="questions; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default=None)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    with closing(open_engine(load_settings(device=args.device, model=args.model))) as engine:
        done = rows(engine, args.data, args.limit, args.seed)
        record = {
            "formats": summary(done, args.seed),
            "questions": len(done),
            "documents": len({(row.dataset, row.document) for row in done}),
            "data": [path.name for path in args.data],
            "limit": args.limit,
            "seed": args.seed,
            "model": engine.fingerprint,
            "precision": engine.settings.resolved_precision(),
            "block_tokens": engine.block_tokens,
            "environment": environment(engine.settings.device),
            "rows": [dataclasses.asdict(row) for row in done],
        }
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
