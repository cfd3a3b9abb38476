"""`fineprint eval generate` and `fineprint eval convert`: commands that make question sets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.reporting import JsonOption, ModelOption, emit, note, reporting

if TYPE_CHECKING:
    from eval.types import EvalDocument

OutOption = Annotated[Path, typer.Option("--out", help="The JSON lines file to write.")]


def generate(
    texts: Annotated[
        list[Path], typer.Argument(help="Text, PDF or DOCX files, or question sets (.jsonl).")
    ],
    out: OutOption,
    tasks: Annotated[
        str,
        typer.Option(
            "--task",
            help="Of single, multi-key, multi-value, variable-tracking, aggregation.",
        ),
    ] = "single,multi-key,multi-value,variable-tracking,aggregation",
    lengths: Annotated[
        str, typer.Option("--lengths", help="Tokens of a document, planted facts included.")
    ] = "4K,16K,64K",
    depths: Annotated[
        int,
        typer.Option("--depths", min=1, help="Evenly spaced places of the fact (one-fact tasks)."),
    ] = 5,
    count: Annotated[
        int, typer.Option("--count", min=1, help="Documents of each task, length and depth.")
    ] = 1,
    lang: Annotated[str, typer.Option("--lang", help="auto (all), en or zh.")] = "auto",
    seed: Annotated[int, typer.Option("--seed")] = 0,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Use texts again when they are used up.")
    ] = False,
    twins: Annotated[
        bool, typer.Option("--twins/--no-twins", help="Also ask what nothing answers.")
    ] = True,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plant facts in real text at wanted lengths and depths, and ask for them."""
    from tqdm import tqdm

    from app.settings import load_settings
    from eval.datasets import write_jsonl
    from eval.tasks.generation import TaskPlan, generate_counted, languages, named_tasks
    from eval.tasks.texts import named_language, open_tokenizer, parse_size, read_texts

    with reporting(as_json):
        plan = TaskPlan(
            tasks=named_tasks(_parts(tasks)),
            lengths=[parse_size(size) for size in _parts(lengths)],
            depths=depths,
            count=count,
            seed=seed,
            twins=twins,
            repeat=repeat,
        )
        choice = named_language(lang)
        tokenizer = open_tokenizer(load_settings(model=model))
        usable = read_texts(texts, tokenizer, choice)
        total = plan.total(len(languages(usable)))
        tokens: list[int] = []
        with tqdm(total=total, unit=" documents", file=sys.stderr, disable=None) as bar:

            def documents() -> Iterator[EvalDocument]:
                for generated in generate_counted(usable, plan, tokenizer):
                    tokens.append(generated.tokens)
                    bar.update()
                    yield generated.document

            written = write_jsonl(documents(), out)
    if as_json:
        emit({"out": str(out), **asdict(written), "tokens": tokens})
        return
    note(
        f"{written.documents} documents with {written.questions} questions "
        f"({written.unanswerable} not answerable), {min(tokens):,} to {max(tokens):,} tokens: {out}"
    )


def convert(
    out: OutOption,
    source: Annotated[
        Path | None,
        typer.Argument(help="File or folder of a question set.", show_default=False),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--form", help="Its form [told from the content].", show_default=False),
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option("--hub", help="Fetch this data set (OWNER/NAME) instead.", show_default=False),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="Which file of the fetched set.", show_default=False),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="Branch, tag or commit to fetch.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a question set of any form that is read as JSON lines in the project's own form."""
    from eval.datasets.conversion import convert as convert_local
    from eval.datasets.conversion import convert_from_hub
    from eval.datasets.forms import named_form
    from eval.errors import DatasetError

    with reporting(as_json):
        if (source is None) == (hub is None):
            raise DatasetError("Name either a file or folder, or a data set with --hub.")
        if source is not None and (file or revision):
            raise DatasetError("--file and --revision go with --hub. Give the path of the file.")
        known = None if form is None else named_form(form)
        if hub is None and source is not None:
            found, written = convert_local(source, out, known)
        elif hub is not None and known is not None:
            found, written = convert_from_hub(hub, out, known, file=file, revision=revision)
        else:
            raise DatasetError("Say with --form in which form the data set of the hub is.")
    if as_json:
        emit({"out": str(out), "form": found, **asdict(written)})
        return
    note(
        f"{written.documents} documents with {written.questions} questions "
        f"({written.unanswerable} not answerable; {written.unplaced} whose answers have no place "
        f"in the text), read as {found}: {out}"
    )


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
