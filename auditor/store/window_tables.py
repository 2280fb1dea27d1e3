"""Rolling windows as SQLAlchemy sees them. The migrations are the truth; a test holds both together.

Registered with the metadata of ``tables`` (neighbour module), which has the exchanges that are counted.
"""

from typing import Final

from sqlalchemy import Column, DateTime, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.coding_tables import ballots, tallies
from auditor.store.tables import metadata

#: What a tally counts, and whose: a row of the sums for each subject, in it a number for each outcome.
OUTCOME: Final = ("sel", "sel_reason", "elab", "elab_reason", "uncoded")
SUBJECT: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "coder", "n", *OUTCOME})
#: The same of ballots.
VOTES: Final = ("votes",)
VOTERS: Final = ("deployment", "origin", "rubric")


def _sums(name: str, tiles: Table, key: tuple[str, ...]) -> Table:
    return Table(
        name,
        metadata,
        Column("coder", Text, primary_key=True),
        Column("window", Text, primary_key=True),
        Column("digest", Uuid, primary_key=True),
        *(Column(column, tiles.c[column].type, nullable=tiles.c[column].nullable) for column in key),
        Column("counts", JSONB, nullable=False),
    )


windows = Table(
    "windows",
    metadata,
    Column("coder", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("since", DateTime(timezone=True), nullable=False),
)
window_tallies = _sums("window_tallies", tallies, SUBJECT)
window_ballots = _sums("window_ballots", ballots, VOTERS)
