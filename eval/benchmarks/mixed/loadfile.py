"""A load as JSON lines that this benchmark and other clients can send again.

The fields that others read: `prompt` and `output_tokens` (vllm bench serve, dataset "custom", with
--custom-output-len -1); `prompt`, `prompt_tokens_count` and `output_tokens_count` (guidellm);
`text`, `output_length` and, in an open loop, `timestamp` in milliseconds (aiperf, "single_turn").
Ours: `request_id, cell, kind, tokens, at_ms, asked, expected` and `document_chars`, the length of
the document at the beginning of `prompt`; the first of the questions `asked` stands at its end.
`prompt` is the first field and none of ours is called "question": guidellm takes the first column
with a name of that sort.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from app.storage import atomic_write
from eval.benchmarks.mixed.types import Kind, LoadRequest, PlantedQuestion
from eval.errors import DatasetError

QUESTIONS = 3


def prompt_of(request: LoadRequest, question: PlantedQuestion) -> str:
    """Document and question as one prompt; the document first, so that it can be cached."""
    return f"{request.document}\n\n{question.text}"


def write_load(path: Path, requests: Iterable[LoadRequest]) -> None:
    """Writes the file, whole or not at all."""
    with atomic_write(path) as file:
        for request in requests:
            file.write((json.dumps(_fields(request), ensure_ascii=False) + "\n").encode())


def read_load(path: Path) -> tuple[LoadRequest, ...]:
    """The requests of a file in its order. Raises DatasetError with the line that can't be used."""
    requests = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    requests.append(_request(line, f"{path}, line {number}"))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} can't be read: {error}") from error
    if not requests:
        raise DatasetError(f"{path} holds no request. Make one with --write-load.")
    return tuple(requests)


def cells_of(requests: Sequence[LoadRequest]) -> dict[str, tuple[LoadRequest, ...]]:
    """The requests by cell, cells in the order in which they begin."""
    cells: dict[str, tuple[LoadRequest, ...]] = {}
    for request in requests:
        cells[request.cell] = (*cells.get(request.cell, ()), request)
    return cells


def _fields(request: LoadRequest) -> dict[str, object]:
    prompt = prompt_of(request, request.questions[0])
    fields: dict[str, object] = {
        "prompt": prompt,
        "output_tokens": request.output_tokens,
        "prompt_tokens_count": request.tokens,
        "output_tokens_count": request.output_tokens,
        "text": prompt,
        "output_length": request.output_tokens,
        "request_id": request.request_id,
        "cell": request.cell,
        "kind": request.kind,
        "tokens": request.tokens,
        "at_ms": request.at_ms,
        "asked": [question.text for question in request.questions],
        "expected": [question.expected for question in request.questions],
        "document_chars": len(request.document),
    }
    if request.at_ms is not None:
        # aiperf keeps to timestamps wherever it finds them.
        fields["timestamp"] = request.at_ms
    return fields


def _request(line: str, where: str) -> LoadRequest:
    try:
        fields: dict[str, Any] = json.loads(line)
        kind = fields["kind"]
        at_ms = fields["at_ms"]
        questions = tuple(
            PlantedQuestion(str(text), str(expected))
            for text, expected in zip(fields["asked"], fields["expected"], strict=True)
        )
        size = int(fields["document_chars"])
        prompt = str(fields["prompt"])
        request = LoadRequest(
            request_id=str(fields["request_id"]),
            cell=str(fields["cell"]),
            document=prompt[:size],
            questions=questions,
            tokens=int(fields["tokens"]),
            kind=kind,
            output_tokens=int(fields["output_tokens"]),
            at_ms=None if at_ms is None else float(at_ms),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{where} is no request of a load ({error!r}). Write loads with --write-load."
        ) from error
    if kind not in get_args(Kind) or len(questions) != QUESTIONS or not 0 < size <= len(prompt):
        raise DatasetError(
            f"{where}: a request has a kind (short or long), {QUESTIONS} questions and a document "
            "at the beginning of its prompt. Write loads with --write-load."
        )
    return request
