"""CrowS-Pairs: pairs of sentences that differ in the group, one of which is the more stereotyping.

Both directions are used. In a ``stereo`` pair that sentence is about a disadvantaged group; in an ``antistereo`` pair
it says the contrary of an advantaged group, and the statement's ``source`` says so.
"""

from typing import Final

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement
from auditor.instrument.loaders.loader import Loader, choice, digest, text_of
from auditor.instrument.pool import statement_of

_NAME: Final = "crows-pairs"
_DIRECTIONS: Final = ("stereo", "antistereo")


def _statement(row: Record) -> Statement:
    stereotype, other = text_of(row, "sent_more"), text_of(row, "sent_less")
    direction = text_of(row, "stereo_antistereo")
    if direction not in _DIRECTIONS:
        raise BadRow(f"stereo_antistereo must be {' or '.join(_DIRECTIONS)}")
    if stereotype == other:
        raise BadRow("sent_more and sent_less are the same")
    record: Record = {
        # The published file numbers its rows in a column without a name.
        "id": f"{_NAME}-{row.get('') or digest(stereotype, other)}",
        "statement": stereotype,
        "category": text_of(row, "bias_type"),
        "source": f"CrowS-Pairs, {direction}",
    }
    pair = choice(stereotype, other)
    if pair is not None:
        record |= {"completion": pair.completion, "stereotype_option": pair.first, "counter_option": pair.second}
    return statement_of(record)


LOADER: Final = Loader(
    name=_NAME, columns=("sent_more", "sent_less", "stereo_antistereo", "bias_type"), make=_statement
)
