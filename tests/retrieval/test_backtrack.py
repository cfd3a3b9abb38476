"""A telling word that only an unchosen chunk holds brings that chunk in."""

from __future__ import annotations

from retrieval.backtrack import CHOSEN, brought_in, missed
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.types import Chunk, Hit

RARE = "The gatehouse is open at night."
TEXTS = [f"The supplier delivers goods to the site with notice {n * 1009}." for n in range(1, 27)]
TEXTS.append(RARE)
TEXT = "\n".join(TEXTS)


def index() -> SearchIndex:
    chunks, at = [], 0
    for number, body in enumerate(TEXTS):
        chunks.append(Chunk(number, at, at + len(body), None, "", 1, 1))
        at += len(body) + 1
    return SearchIndex.build(TEXT, chunks, ())


def test_the_missed_word_brings_its_chunk_in() -> None:
    built = index()
    query = read_question("Does the supplier deliver goods to the site through the gatehouse?")
    hits = tuple(
        Hit(built.chunks[number], 1.0 - number / 10, number + 1, ()) for number in range(8)
    )
    (more,) = missed(built, query, hits)
    assert TEXT[more.chunk.start : more.chunk.end] == RARE
    joined = brought_in(hits, (more,))
    assert [hit.rank for hit in joined] == list(range(1, 10))
    assert joined[CHOSEN].chunk == more.chunk
    assert [hit.chunk for hit in joined[:CHOSEN]] == [hit.chunk for hit in hits[:CHOSEN]]


def test_nothing_is_brought_in_when_every_telling_word_is_held() -> None:
    built = index()
    query = read_question("Does the supplier deliver goods to the site?")
    assert missed(built, query, built.find(query)) == ()
    assert missed(built, query, ()) == ()
    held = read_question("Is the gatehouse open?")
    assert missed(built, held, built.find(held)) == ()


def test_a_chunk_that_is_already_there_moves_up() -> None:
    built = index()
    hits = tuple(Hit(built.chunks[number], 1.0, number + 1, ()) for number in range(8))
    joined = brought_in(hits, hits[6:7])
    assert [hit.chunk.index for hit in joined] == [0, 1, 2, 3, 4, 6, 5, 7]
