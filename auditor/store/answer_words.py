"""Keep the words of coded answers, so that answers can be searched.

Bodies are stored as they came (JSON, streams of events, compressed), so PostgreSQL cannot search them. The words of an
answer and of its statement are stored when it is coded. They are content: retention and erasure remove them with it.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from sqlalchemy import Column, ColumnElement, Table, Uuid, exists, func
from sqlalchemy.dialects.postgresql import TSVECTOR, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata
from auditor.store.exchanges import erased_among

answer_words = Table(
    "answer_words",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("words", TSVECTOR, nullable=False),
)

#: No language, so no word stems.
_CONFIGURATION: Final = "simple"
#: Characters of an answer that are searched. PostgreSQL refuses more than 1 MiB of words.
LONGEST: Final = 50_000
#: What a query may hold besides words: quotation marks, and a minus before a word.
_OPERATORS: Final = re.compile(r'"|(?<!\S)-(?=\w)')


async def add_words(connection: AsyncConnection, texts: Mapping[UUID, str]) -> None:
    """Store the words of coded exchanges whose days have their partitions; known and erased ones are left out.

    Parameters
    ----------
    connection
        Connection of the transaction that has stored the codings.
    texts
        Text to search, by exchange; any characters.
    """
    if not texts:
        return
    erased = await erased_among(connection, list(texts))
    rows = [
        {"exchange_id": key, "words": func.to_tsvector(_CONFIGURATION, plain_words(text))}
        for key, text in texts.items()
        if key not in erased
    ]
    if rows:
        await connection.execute(insert(answer_words).values(rows).on_conflict_do_nothing())


def holds_words(exchange_id: ColumnElement[UUID], query: str) -> ColumnElement[bool]:
    """Return the condition that an answer holds what a person searches for.

    Parameters
    ----------
    exchange_id
        The column that names the exchange.
    query
        Words that all have to occur; ``"several words"`` as a phrase, ``or``, and ``-word`` as in a web search. Any
        text is a valid query; one without a word finds nothing.
    """
    kept = [plain_words(part) for part in _OPERATORS.split(query)]
    signs = [*_OPERATORS.findall(query), ""]
    written = "".join(f"{part}{sign}" for part, sign in zip(kept, signs, strict=True))
    wanted = func.websearch_to_tsquery(_CONFIGURATION, written)
    return exists().where(answer_words.c.exchange_id == exchange_id, answer_words.c.words.op("@@")(wanted))


def plain_words(text: str) -> str:
    """Return the words of a text in one case, with a blank for every other character.

    PostgreSQL's own parser takes quadratic time for some texts with signs, such as a long run of ``a_``.

    >>> plain_words("Don't <b>STOP</b>, naïve_one!")
    'don t  b stop  b   naïve one '
    """
    normal = unicodedata.normalize("NFKC", text[:LONGEST]).casefold()[:LONGEST]
    return "".join(character if _is_of_word(character) else " " for character in normal)


def _is_of_word(character: str) -> bool:
    """Return whether a character is a letter, a digit, or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")
