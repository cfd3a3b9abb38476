"""Learns the cues of `retrieval/cues.json` from contracts in which lawyers marked the answers.

    python -m scripts.fit_cues --data DIR --out retrieval/cues.json --folds FOLDS

For each matter that the sets ask for (41 kinds of clause of CUAD, 17 statements about
non-disclosure agreements, the points of merger agreements) a logistic regression tells marked
sentences from the others by their wording, is cut down to its strongest wording and fitted again.
Wording counts as general when it stands in at least three documents, each of its words written in
lower case in three, and without digits: names, places and dates fall out.

The models of quotes and answers (`scripts.fit_judges`) are fitted on scores of cues that did not
see the document: the documents are put in five folds by the company that made them. FOLDS is
filled with one file of cues for each fold, learned without its documents, for
`scripts.bench_retrieval --folds FOLDS`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.cue_terms import CueSentence, Wording, cue_sentences
from retrieval.cues import CueModel, Matter
from retrieval.stems import stem
from retrieval.titles import ClauseTitles
from retrieval.types import Document, DocumentPage
from scripts.fit_judges import judged, observe, quotes

FOLDS = 5
_PLAIN = Path(__file__).with_name("plain_asks.toml")
SETS = ("cuad", "contractnli", "maud_long")
_DOCUMENTS = 3
_CUES = 400
_STRENGTH = 3.0
"""Inverse of the penalty of the regression."""
_OTHERS = 6000
"""At most so many sentences that are not marked are learned from, drawn by seed."""

_CLAUSE_KIND = re.compile(r'^Highlight the parts.*?related to "([^"]+)".*?Details: (.*)$', re.S)
_SCENE = re.compile(r"^Consider [^;]*; (.*)$", re.S)


@dataclass(frozen=True, slots=True)
class Marked:
    """A document cut into sentences, with the gold spans of each matter asked of it."""

    name: str
    text: str
    sentences: tuple[CueSentence, ...]
    golds: dict[str, list[tuple[int, int]]]


def matter_of(question: str) -> tuple[str, tuple[str, ...]]:
    """The name of the matter that a question of the sets asks for, and how it is asked for."""
    kind = _CLAUSE_KIND.match(question)
    if kind is not None:
        label, details = kind.group(1), " ".join(kind.group(2).split())
        return label, (f'"{label}" {details}', label, details)
    scene = _SCENE.match(question)
    asked = scene.group(1) if scene is not None else question
    return asked, (asked,)


def marked(data: dict[str, Any]) -> Marked:
    """Reads one document of a set."""
    text = data["text"]
    clauses = outline(text)
    page = DocumentPage(1, 0, len(text))
    chunks = split(Document(text, (page,), data["title"], "text/plain", "en"), clauses)
    found = cue_sentences(text, chunks, clauses, ClauseTitles(clauses), Wording())
    golds: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for question in data["qas"]:
        spans = zip(question["answer_starts"], question["answers"], strict=True)
        name, _ = matter_of(question["question"])
        golds[name] += [(at, at + len(answer)) for at, answer in spans if at >= 0 and answer]
    return Marked(data["doc_id"], text, tuple(found), dict(golds))


def general_wording(documents: Sequence[Marked]) -> list[str]:
    """Wording that stands in several documents and names nothing."""
    holding: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    for document in documents:
        holding.update({term for one in document.sentences for term in one.terms})
        lower.update({stem(word) for word in re.findall(r"\b[a-z]+\b", document.text)})

    def general(term: str) -> bool:
        body = term[2:] if term[1:2] == ":" else term
        if body.startswith("<"):
            return True
        spelled = body.split()
        long = any(len(word) > 1 for word in spelled)
        plain = all(lower[word] >= _DOCUMENTS for word in spelled)
        return long and plain and not re.search(r"\d", body)

    return sorted(term for term, count in holding.items() if count >= _DOCUMENTS and general(term))


class Rows:
    """The sentences of the documents as rows over general wording."""

    def __init__(self, documents: Sequence[Marked]) -> None:
        self.terms = general_wording(documents)
        columns = {term: column for column, term in enumerate(self.terms)}
        places: list[int] = []
        values: list[float] = []
        ends = [0]
        self.first: list[int] = []
        for document in documents:
            self.first.append(len(ends) - 1)
            for sentence in document.sentences:
                known = [columns[term] for term in sentence.terms if term in columns]
                places += known
                values += [sentence.length**-0.5] * len(known)
                ends.append(len(places))
        shape = (len(ends) - 1, len(columns))
        plain = csr_matrix((np.array(values, np.float32), places, ends), shape=shape)
        held = np.diff(plain.tocsc().indptr)
        self.idf: NDArray[np.float32] = np.log(shape[0] / (1 + held)).astype(np.float32)
        self.rows = csr_matrix(plain @ diags(self.idf))


def _regression(rows: csr_matrix, marks: NDArray[np.bool_]) -> LogisticRegression:
    model = LogisticRegression(
        C=_STRENGTH, class_weight="balanced", solver="liblinear", max_iter=200
    )
    return model.fit(rows, marks)


def learn(
    name: str, asks: Sequence[str], documents: Sequence[Marked], wording: Rows, seed: int = 0
) -> Matter | None:
    """The cues of one matter; None when fewer than two sentences are marked."""
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    marks: list[bool] = []
    for first, document in zip(wording.first, documents, strict=True):
        if name in document.golds:
            golds = document.golds[name]
            chosen += range(first, first + len(document.sentences))
            marks += [quotes(sentence.span, golds) for sentence in document.sentences]
    marked_rows = np.array(chosen, dtype=int)[np.array(marks, dtype=bool)]
    others = np.array(chosen, dtype=int)[~np.array(marks, dtype=bool)]
    if len(marked_rows) < 2:
        return None
    if len(others) > _OTHERS:
        others = rng.choice(others, _OTHERS, replace=False)
    picked = np.concatenate([marked_rows, others])
    truth = np.arange(len(picked)) < len(marked_rows)
    rows = wording.rows[picked]
    strongest = np.argsort(-np.abs(_regression(rows, truth).coef_[0]), kind="stable")[:_CUES]
    fitted = _regression(rows[:, strongest], truth)
    weights = fitted.coef_[0] * wording.idf[strongest]
    cues = {
        wording.terms[column]: round(float(weight), 3)
        for column, weight in sorted(
            zip(strongest, weights, strict=True), key=lambda pair: -pair[1]
        )
        if abs(weight) >= 0.0005
    }
    return Matter(name, tuple(asks), round(float(fitted.intercept_[0]), 3), cues)


def matters(documents: Sequence[Marked], asks: dict[str, tuple[str, ...]]) -> list[Matter]:
    """Learns every matter in `asks` from `documents`."""
    wording = Rows(documents)
    found = (learn(name, asks[name], documents, wording) for name in sorted(asks))
    return [matter for matter in found if matter is not None]


def read_sets(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, tuple[str, ...]]]:
    """The documents of each set, and how each matter is asked for."""
    sets = {}
    asks: dict[str, tuple[str, ...]] = {}
    for name in SETS:
        lines = (folder / "en_contracts" / f"{name}.jsonl").read_text(encoding="utf-8")
        sets[name] = [json.loads(line) for line in lines.splitlines()]
        for data in sets[name]:
            asks.update(matter_of(question["question"]) for question in data["qas"])
    for matter, plain in tomllib.loads(_PLAIN.read_text(encoding="utf-8")).items():
        asks[matter] = (*asks[matter], *plain)
    return sets, asks


def fold_of(name: str) -> int:
    """The fold of a document. Contracts of one company often repeat each other, so they share it:
    names begin with the set, a number and the company (`cuad:131:AlliedEsports...Inc_2019`)."""
    company = name.split(":")[-1].split("_")[0].split(",")[0].split(" ")[0]
    return zlib.crc32(company.encode()) % FOLDS


def write(path: Path, model: CueModel) -> None:
    """One cue a line, the strongest first."""
    entries = {
        one.name: {"asks": one.asks, "bias": one.bias, "lean": one.lean, "cues": dict(one.cues)}
        for one in model.matters
    }
    judges = {
        key: {"bias": judge.bias, "weights": dict(judge.weights)}
        for key, judge in (("quote", model.quote), ("answer", model.answer))
    }
    text = json.dumps({**judges, "matters": entries}, indent=0, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", type=Path, required=True)
    args = parser.parse_args()
    sets, asks = read_sets(args.data)
    folds = {data["doc_id"]: fold_of(data["doc_id"]) for rows in sets.values() for data in rows}
    documents = [marked(data) for rows in sets.values() for data in rows]
    learned = [
        matters([one for one in documents if folds[one.name] != fold], asks)
        for fold in range(FOLDS)
    ]
    seen = observe(sets, folds, learned)
    args.folds.mkdir(parents=True, exist_ok=True)
    for fold in range(FOLDS):
        others = [one for one in seen if one.fold != fold]
        write(args.folds / f"{fold}.json", judged(learned[fold], others))
    model = judged(matters(documents, asks), seen)
    write(args.out, model)
    sys.stderr.write(
        f"{len(model.matters)} matters of {len(asks)}, {len(model.columns)} different cues\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
