"""What KV formats cost: likelihood of gold answers and their figures in each, question by question.

Retrieval, pages and prompt are those of `fineprint eval run --switch phrase=off`, and the same to
the byte in all formats. Blocks are read once and kept as computed; before a question sees them they
go through a format and back, page by page. With independent reading that is what the format's own
pool would give, to the last bit, for a seventh of the work. What the formats do to speed and memory
is not seen here, nor what they do to an answer that the model goes on with by itself.

    python -m eval.kv_formats cuad.jsonl statute_qa.jsonl --limit 200 --out record.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import get_args

import torch

from app.answer.items import find_items
from app.prompt import PromptPlan
from app.services import open_engine
from app.settings import load_settings
from backend.engine import Engine
from eval.environment import environment
from eval.runs.engine_answers import EngineAnswerer
from eval.runs.likelihood import GoldScore, gold_answer, gold_score
from eval.runs.sampling import Listed, Sample, Wanted, draw_sample
from eval.runs.switches import parse_switches
from eval.statistics import Estimate, estimate
from eval.types import Question
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
class Figure:
    """A figure of a gold answer: in which formats the model would have said it."""

    kind: str
    right: Mapping[FormatName, bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One question's gold answer by format: nats per token, and its figures."""

    question: str
    dataset: str
    document: str
    nll: Mapping[FormatName, float]
    figures: tuple[Figure, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
    """What to ask, and in which formats. `auto`, which all are compared with, is always there.
    `with_figures`: only questions whose gold answer has figures, equally many of each file."""

    data: Sequence[Path]
    wanted: Wanted
    formats: Sequence[FormatName] = FORMATS
    switches: Sequence[str] = ()
    with_figures: bool = False

    @property
    def all_formats(self) -> tuple[FormatName, ...]:
        """Each once."""
        return tuple(dict.fromkeys(("auto", *self.formats)))


def rows(engine: Engine, choices: Choices) -> Iterator[Row]:
    """Ask the drawn questions that have a gold answer in every format."""
    pool = engine._store.pool
    seen = SeenThrough(pool.dtype)
    pool.format = seen
    others = {name: page_format(name, pool.dtype) for name in choices.all_formats}
    switches = parse_switches("evidence", ["phrase=off", *choices.switches])
    seed = choices.wanted.seed
    answerer = EngineAnswerer(engine, "evidence", switches, seed, load_settings().chunk_chars)
    for planned in _drawn(choices).opened():
        with answerer.opened(planned.document) as session:
            for name, question in planned.questions:
                scores = _in_all(engine, seen, others, session.plan(question), question)
                if scores:
                    yield _row(name, planned.dataset, planned.document.doc_id, scores)


def _drawn(choices: Choices) -> Sample:
    wanted = choices.wanted
    if not choices.with_figures:
        return draw_sample(choices.data, None, wanted)
    whole = draw_sample(choices.data, None, dataclasses.replace(wanted, limit=0))
    bearing = {
        name
        for planned in whole.opened()
        for name, question in planned.questions
        if find_items(gold_answer(question)).keyed()
    }
    share = wanted.limit // len(choices.data) or len(whole.listed)
    listed: list[Listed] = []
    for number in range(len(choices.data)):
        own = [one for one in whole.listed if one.place[0] == number and one.name in bearing]
        # The same of each file, whatever files go with it.
        drawn = random.Random(wanted.seed).sample(own, min(share, len(own)))
        listed += sorted(drawn, key=lambda one: one.place)
    return dataclasses.replace(whole, listed=tuple(listed))


def _in_all(
    engine: Engine,
    seen: SeenThrough,
    others: Mapping[FormatName, PageFormat],
    plan: PromptPlan,
    question: Question,
) -> dict[FormatName, GoldScore]:
    """The answer in every format; empty for a question without one."""
    scores: dict[FormatName, GoldScore] = {}
    for name, seen.other in others.items():
        # The dtype that the pool has anyway changes nothing.
        score = (
            scores["auto"]
            if scores and seen.other.name == others["auto"].name
            else gold_score(engine, plan, question)
        )
        if score is None:
            return {}
        scores[name] = score
    return scores


def _row(question: str, dataset: str, document: str, scores: Mapping[FormatName, GoldScore]) -> Row:
    return Row(
        question,
        dataset,
        document,
        {form: score.nll for form, score in scores.items()},
        tuple(
            Figure(figure.kind, {form: scores[form].figures[place].right for form in scores})
            for place, figure in enumerate(scores["auto"].figures)
        ),
    )


def summary(done: Sequence[Row], seed: int) -> dict[str, dict[str, object]]:
    """Means by format, and the paired differences to `auto` with their intervals, resampled by
    documents."""
    forms = tuple(done[0].nll) if done else ()
    owners = [(row.dataset, row.document) for row in done]
    figures = [figure.right for row in done for figure in row.figures]
    bearers = [(row.dataset, row.document) for row in done for _ in row.figures]
    table: dict[str, dict[str, object]] = {}
    for form in forms:
        right = [float(figure[form]) for figure in figures]
        change = [float(figure[form]) - float(figure["auto"]) for figure in figures]
        loss = [row.nll[form] - row.nll["auto"] for row in done]
        table[form] = {
            "nll": _told(estimate([row.nll[form] for row in done], owners, seed=seed)),
            "to_auto": _told(estimate(loss, owners, seed=seed)),
            "figures_right": _told(estimate(right, bearers, seed=seed, share=True)),
            "figures_to_auto": _told(estimate(change, bearers, seed=seed)),
            "figures_lost": change.count(-1.0),
            "figures_won": change.count(1.0),
        }
    return table


def _told(found: Estimate | None) -> dict[str, float | int | None] | None:
    if found is None:
        return None
    return {
        name: round(value, 5) if isinstance(value, float) else value
        for name, value in dataclasses.asdict(found).items()
    }


def _kinds(done: Sequence[Row]) -> dict[str, int]:
    kinds = [figure.kind for row in done for figure in row.figures]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def main() -> None:
    """Measure and write one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m eval.kv_formats", description=__doc__)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=0, help="questions; 0 takes all")
    parser.add_argument("--max-tokens", type=int, help="longest document, estimated")
    parser.add_argument("--with-figures", action="store_true", help="answers with figures only")
    parser.add_argument("--formats", nargs="+", choices=get_args(FormatName), default=FORMATS)
    parser.add_argument("--switch", action="append", default=[], help="as of `eval run`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default=None)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    wanted = Wanted(args.limit, args.seed, "answerable", max_tokens=args.max_tokens)
    choices = Choices(args.data, wanted, args.formats, args.switch, args.with_figures)
    with closing(open_engine(load_settings(device=args.device, model=args.model))) as engine:
        done: list[Row] = []
        for row in rows(engine, choices):
            done.append(row)
            sys.stderr.write(f"{len(done)}: {row.question} {row.nll}\n")
        record = {
            "formats": summary(done, args.seed),
            "questions": len(done),
            "with_figures": sum(bool(row.figures) for row in done),
            "figures": _kinds(done),
            "documents": len({(row.dataset, row.document) for row in done}),
            "data": [path.name for path in args.data],
            "wanted": dataclasses.asdict(wanted),
            "only_with_figures": args.with_figures,
            "switches": args.switch,
            "model": engine.fingerprint,
            "precision": engine.settings.resolved_precision(),
            "block_tokens": engine.block_tokens,
            "environment": environment(engine.settings.device),
            "rows": [dataclasses.asdict(row) for row in done],
        }
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
