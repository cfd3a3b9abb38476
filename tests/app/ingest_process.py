"""A process that ingests documents and hangs at a named point, to be killed there.

    python ingest_process.py DATA_DIR DATABASE_URL POINT COUNT SERVE

Prints `at POINT` when a job has got there and all documents are added. Points: parsing, indexing,
saving (inside the transaction that stores the chunks), reading, answering, none.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from pathlib import Path
from typing import Any

import fake_engine

from app import ingest
from app.services import open_services
from app.settings import Settings

CLAUSES = 200
steps: Any = ingest


def contract(number: int) -> str:
    """A contract, different for each number."""
    lines = [f"SUPPLY AGREEMENT {number}", ""]
    for clause in range(1, CLAUSES + 1):
        lines.append(f"{clause}. Obligation {clause}")
        lines.append(f"{clause}.1 The Supplier shall deliver {clause * 7} units within 30 days.")
        lines.append(f"{clause}.2 The price is EUR {clause * 1000 + number}.00 per unit.")
    return "\n".join(lines)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hang(point: str) -> None:
    say(f"at {point}")
    time.sleep(3600)


def hang_at(point: str, added: threading.Event) -> None:
    """Replace the step of that name by one that never ends."""
    parse = steps.parse_file

    def parse_when_added(*arguments: Any, **more: Any) -> Any:
        added.wait()
        if point == "parsing":
            hang(point)
        return parse(*arguments, **more)

    steps.parse_file = parse_when_added
    if point == "indexing":
        steps.split = lambda *_a, **_k: hang(point)
    elif point == "saving":
        insert = steps.insert

        def insert_half(table: Any) -> Any:
            if table is steps.ChunkRow:
                hang(point)
            return insert(table)

        steps.insert = insert_half


def main() -> None:
    folder, url, point, count, serve = sys.argv[1:]
    settings = Settings(data_dir=Path(folder), database_url=url, heartbeat_s=0.5)
    engine: Any = fake_engine.FakeEngine(pace=3600.0 if point == "reading" else 0.0)
    added = threading.Event()
    hang_at(point, added)
    with open_services(settings, engine=engine, serve=serve == "serve") as services:
        ids = []
        for number in range(int(count)):
            text = io.BytesIO(contract(number).encode())
            ids.append(services.library.add(text, f"contract {number}.txt")[0].id)
        added.set()
        if point == "reading":
            for document_id in ids:
                services.library.wait(document_id, until="askable")
            hang(point)
        for document_id in ids:
            services.library.wait(document_id)
        if point == "answering":
            conversation = services.conversations.create(document_ids=ids)
            services.conversations.start_answer(
                conversation.id, "ans_1", question="What is the price?"
            )
            hang(point)
        say("done")


if __name__ == "__main__":
    main()
