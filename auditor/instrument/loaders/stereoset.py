"""StereoSet: a context with three continuations, one the stereotype and one its contrary.

Within a sentence (``intrasentence``) the options are the words that differ; between sentences (``intersentence``)
they are the whole second sentences. The third, unrelated continuation is not used.
"""

from typing import Final

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement
from auditor.instrument.loaders.loader import GAP, Loader, OptionPair, choice, text_of
from auditor.instrument.pool import BLANK, statement_of

_NAME: Final = "stereoset"
#: Stands in the context of an intrasentence for what its continuations fill in.
_BLANK: Final = "BLANK"


def _statement(row: Record) -> Statement:
    stereotype, other = (_labelled(row, label) for label in ("stereotype", "anti-stereotype"))
    context = text_of(row, "context")
    between = _BLANK not in context
    pair = _second(context, stereotype, other) if between else choice(stereotype, other)
    record: Record = {
        "id": f"{_NAME}-{text_of(row, 'id')}",
        "statement": f"{context} {stereotype}" if between else stereotype,
        "category": text_of(row, "bias_type"),
        "source": f"StereoSet, {'intersentence' if between else 'intrasentence'}",
    }
    if pair is not None:
        record |= {"completion": pair.completion, "stereotype_option": pair.first, "counter_option": pair.second}
    return statement_of(record)


def _second(context: str, stereotype: str, other: str) -> OptionPair | None:
    """Put the blank where the second sentence stands, and the full stop that both have behind it."""
    stop = "." if stereotype.endswith(".") and other.endswith(".") else ""
    first, second = stereotype.removesuffix(stop), other.removesuffix(stop)
    same = first.casefold() == second.casefold()
    return None if same or BLANK.search(context) else OptionPair(f"{context} {GAP}{stop}", first, second)


def _labelled(row: Record, label: str) -> str:
    """Return the sentence that has a gold label."""
    listed = row.get("sentences")
    sentences = [sentence for sentence in listed if isinstance(sentence, dict)] if isinstance(listed, list) else []
    matches = [sentence for sentence in sentences if sentence.get("gold_label") == label]
    if len(matches) != 1:
        raise BadRow(f"sentences must hold one whose gold_label is {label}")
    return text_of(matches[0], "sentence")


LOADER: Final = Loader(name=_NAME, columns=("id", "bias_type", "context", "sentences"), make=_statement)
