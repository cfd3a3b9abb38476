"""Our token F1, exact match and ROUGE-L against independent implementations on real answers.

    python -m scripts.check_metrics --data FILE... [--pairs N] [--per-document N] [--show N]

Each pair is the first gold answer of a question and the first sentence that retrieval finds for it.
The independent ones are rouge-score (in Chinese with a tokenizer of its own here: rouge-score reads
a-z and 0-9 only) and the SQuAD metric of torchmetrics. The latter is fed our tokens, spelled so
that its normalisation leaves them alone, which checks the counting. English is compared as well
without numbers and marks outside of ASCII, where all normalise alike, and raw, where they don't:
both others break numbers ("15.00%" is "1500" or "15" and "00"). The raw rows say how many pairs
differ, and by what.

Prints one JSON object a file; exits with 1 when a comparison that must agree does not.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import rjieba
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer, Tokenizer

from eval.datasets import open_dataset
from eval.metrics.normalisation import (
    rouge_tokens,
    rouge_word_tokens,
    tokens,
    word_tokens,
)
from eval.metrics.overlap import exact_match, f1, rouge_l
from eval.types import EvalDocument
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Language

Cut = Callable[[str], list[str]]
_RAW = "(raw text) "
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*)\s?[%‰]?"


@dataclass(frozen=True, slots=True)
class Pair:
    """A gold answer and a prediction, on a document of this language."""

    language: Language
    gold: str
    prediction: str


class Splitter(Tokenizer):  # type: ignore[misc]
    """Chinese characters or dictionary words, numbers and Latin words, by other means than ours."""

    def __init__(self, words: bool) -> None:
        self._words = words

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`."""
        wide = unicodedata.normalize("NFKC", text).lower()
        pattern = rf"{_NUMBER}|[$¥€£]|[a-z][a-z0-9]*|[\u3400-\u9fff]" + ("+" if self._words else "")
        found: list[str] = []
        for token in re.findall(pattern, wide):
            han = "\u3400" <= token[0] <= "\u9fff"
            found += rjieba.cut(token) if han and self._words else [_plain(token)]
        return found


def _plain(token: str) -> str:
    number = token.replace(",", "").replace(" ", "")
    if re.fullmatch(r"\d+\.\d+[%‰]?", number):
        share = number[-1] if number[-1] in "%‰" else ""
        return number.rstrip("%‰").rstrip("0").rstrip(".") + share
    return number


def pairs(path: Path, per_document: int) -> Iterator[Pair]:
    """Pairs of the answerable questions with gold spans, at most so many of a document."""
    for document in open_dataset(path):
        yield from _pairs_of(document, per_document)


def _pairs_of(document: EvalDocument, limit: int) -> Iterator[Pair]:
    asked = [question for question in document.questions if question.spans][:limit]
    if not asked:
        return
    clauses = outline(document.text)
    index = SearchIndex.build(document.text, split(document.document, clauses), clauses)
    for question in asked:
        found = find_evidence(index, question.question).sentences
        if found:
            quote = document.text[found[0].start : found[0].end]
            yield Pair(document.lang, question.answers[0], quote)


def squad_scores(prediction: str, gold: str) -> tuple[float, float]:
    """F1 and exact match of torchmetrics, 0 to 1."""
    from torchmetrics.functional.text import squad

    found = squad(
        [{"prediction_text": prediction, "id": "1"}],
        [{"answers": {"answer_start": [0], "text": [gold]}, "id": "1"}],
    )
    return float(found["f1"]) / 100, float(found["exact_match"]) / 100


def spelled(found: Sequence[str]) -> str:
    """Tokens in letters and digits only, so that nothing is left to normalise."""
    return " ".join(
        "".join(c if c.isalnum() else f"x{ord(c):x}x" for c in f"z{token}") for token in found
    )


def shared(text: str) -> str:
    """English text as both normalise it alike: no digits with what touches them, no marks outside
    of ASCII, no bracketed letters (we keep "(a)", SQuAD takes it for an article)."""
    bare = re.sub(r"\([A-Za-z]\)", " ", text)
    bare = re.sub(r"\S*[\d$]\S*", " ", bare)
    return "".join(c if c.isascii() else " " for c in bare)


def squad_tokens(text: str) -> list[str]:
    """What SQuAD's normalisation makes of a text, to say where it differs."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(?:a|an|the)\b", " ", bare).split()


def cause(pair: Pair, ours: Cut, theirs: Cut) -> str:
    """Why their tokens of a pair are not ours."""
    different: set[str] = set()
    for text in (pair.gold, pair.prediction):
        mine, other = Counter(ours(text)), Counter(theirs(text))
        different |= set(mine - other) | set(other - mine)
    if any(any(c.isdigit() or c in "$%" for c in token) for token in different):
        return "numbers"
    if not (pair.gold + pair.prediction).isascii():
        return "marks outside of ASCII"
    return "bracketed letters" if different else "none"


class Tally:
    """Pairs that agree by comparison, and why raw ones differ."""

    def __init__(self, show: int) -> None:
        self.agree: dict[str, int] = {}
        self.differ: dict[str, Counter[str]] = {}
        self.distance: dict[str, list[float]] = {}
        self._show = show

    def add(
        self, name: str, pair: Pair, ours: Sequence[float], theirs: Sequence[float], why: str = ""
    ) -> None:
        """Count one comparison."""
        distance = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        self.distance.setdefault(name, []).append(distance)
        same = distance < 1e-5
        self.agree[name] = self.agree.get(name, 0) + same
        if same:
            return
        if why:
            self.differ.setdefault(name, Counter())[why] += 1
        if self._show > 0:
            self._show -= 1
            sys.stderr.write(f"{name}: {ours} {theirs} {why}\n{pair}\n")


def compare(found: Sequence[Pair], show: int) -> dict[str, object]:
    """Pairs that agree, by comparison."""
    tally, default = Tally(show), RougeScorer(["rougeL"])
    for pair in found:
        if pair.language == "zh":
            _chinese(pair, tally)
        else:
            _english(pair, tally, default)
    columns = zip(*((*_squad(p, tokens), _rouge(p, rouge_tokens)) for p in found), strict=True)
    means = [round(sum(column) / len(found), 4) for column in columns]
    return {
        "pairs": len(found),
        "agree": tally.agree,
        "differ": {name: dict(causes) for name, causes in tally.differ.items()},
        "mean_distance": {
            name: round(sum(tally.distance[name]) / len(found), 4) for name in tally.differ
        },
        "means": dict(zip(("f1", "em", "rouge_l"), means, strict=True)),
    }


def _chinese(pair: Pair, tally: Tally) -> None:
    for name, cut, rouge_cut in (
        ("characters", tokens, rouge_tokens),
        ("words", word_tokens, rouge_word_tokens),
    ):
        _counting(f"{name}: ", pair, cut, tally)
        scorer = RougeScorer(["rougeL"], tokenizer=Splitter(words=name == "words"))
        theirs = scorer.score(pair.gold, pair.prediction)["rougeL"].fmeasure
        tally.add(f"{name}: ROUGE-L", pair, [_rouge(pair, rouge_cut)], [theirs])


def _english(pair: Pair, tally: Tally, scorer: RougeScorer) -> None:
    _counting("", pair, tokens, tally)
    plain = Pair("en", shared(pair.gold), shared(pair.prediction))
    for raw, one in (("", plain), (_RAW, pair)):
        kind = raw or "without numbers: "
        why = cause(one, lambda text: tokens(text, "en"), squad_tokens) if raw else ""
        theirs = squad_scores(one.prediction, one.gold)
        tally.add(f"{kind}F1 and EM", pair, _squad(one, tokens), theirs, why)
        why = cause(one, rouge_tokens, DefaultTokenizer().tokenize) if raw else ""
        rouge = scorer.score(one.gold, one.prediction)["rougeL"].fmeasure
        tally.add(f"{kind}ROUGE-L", pair, [_rouge(one, rouge_tokens)], [rouge], why)


def _counting(
    name: str, pair: Pair, cut: Callable[[str, Language], list[str]], tally: Tally
) -> None:
    gold, prediction = (spelled(cut(text, pair.language)) for text in (pair.gold, pair.prediction))
    tally.add(
        f"{name}F1 and EM, our tokens", pair, _squad(pair, cut), squad_scores(prediction, gold)
    )


def _squad(pair: Pair, cut: Callable[[str, Language], list[str]]) -> tuple[float, float]:
    mine, gold = cut(pair.prediction, pair.language), cut(pair.gold, pair.language)
    return f1(mine, gold), exact_match(mine, gold)


def _rouge(pair: Pair, cut: Cut) -> float:
    return rouge_l(cut(pair.prediction), cut(pair.gold))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--per-document", type=int, default=4)
    parser.add_argument("--show", type=int, default=0, help="disagreeing pairs to print")
    args = parser.parse_args()
    try:
        import torchmetrics
    except ImportError:
        parser.error("torchmetrics is missing; install it with: pip install torchmetrics")
    sys.stderr.write(f"torchmetrics {torchmetrics.__version__}\n")
    agreed = True
    for path in args.data:
        found = list(islice(pairs(path, args.per_document), args.pairs))
        result = compare(found, args.show) if found else {"pairs": 0}
        sys.stdout.write(json.dumps({"file": path.name, **result}, ensure_ascii=False) + "\n")
        counts = result.get("agree")
        if isinstance(counts, dict):
            musts = [n for name, n in counts.items() if not name.startswith(_RAW)]
            agreed = agreed and all(n == len(found) for n in musts)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
