"""Decode one line of a coded file, and explain a line that cannot be decoded.

Only fields that are counted or shown are decoded, so a line costs about a microsecond. ``auditor.documents.jsonl``
opens the file and names the line.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec

from auditor.counting.joint import OPEN
from auditor.documents.jsonl import BadRow
from auditor.domain.condition import Task

#: Task codes of the files.
TASKS: Final = tuple(task.value for task in Task)
STATEMENT: Final = "statement"
#: The rubrics of controls: the claim about the counter group, and a scene that gives the answer.
COUNTER: Final = "counter"
DISAMBIGUATED: Final = "disambiguated"
CONTROLS: Final = (COUNTER, DISAMBIGUATED)
#: The kinds of rubric; estimates of different rubrics are never pooled.
RUBRICS: Final = (STATEMENT, OPEN, "proposition", *CONTROLS)
#: The stances that the answer named first, or the high end of a scale, may have.
KEYS: Final = ("E", "D")


class Vote(msgspec.Struct, frozen=True):
    """One judge's label of one layer."""

    judge: str
    label: str | None = None
    layer: str | None = None


class CodedRow(msgspec.Struct):
    """The fields of a coded row that the analysis reads. Absent factors are at their baseline level."""

    id: str | int
    deployment: str
    task: str
    sel: str
    elab: str
    sel_reason: str | None = None
    elab_reason: str | None = None
    statement_id: str | int | None = None
    statement: str | None = None
    template_id: str | int | None = None
    perspective: str | None = None
    role: str | None = None
    sentiment: str | None = None
    category: str | None = None
    rubric: str | None = None
    claim: str | None = None
    keyed: str | None = None
    votes: tuple[Vote, ...] | None = None
    completion_tokens: int | None = None
    inclusion: float | None = None
    response: str | None = None

    @property
    def length_class(self) -> str | None:
        """The class of the answer's length in completion tokens; None where it is not known."""
        if self.completion_tokens is None:
            return None
        return _LENGTH_CLASSES[bisect_right(_LENGTHS, self.completion_tokens)]


#: What is computed from other fields of a row.
LENGTH_CLASS: Final = "length_class"
_LENGTHS: Final = (32, 128, 512)
_LENGTH_CLASSES: Final = ("0 to 31 tokens", "32 to 127 tokens", "128 to 511 tokens", "512 tokens and more")
_KNOWN: Final = frozenset((*CodedRow.__struct_fields__, LENGTH_CLASS))


def row_decoder(extra: Sequence[str]) -> tuple[Callable[[bytes], CodedRow], tuple[str, ...]]:
    """Make a decoder that also reads further fields, of any single value.

    Parameters
    ----------
    extra
        Names of fields as the file spells them.

    Returns
    -------
    (callable, tuple)
        Decoder of a line, and the attribute that holds each extra field.
    """
    fields: list[tuple[str, type, Any]] = []
    rename: dict[str, str] = {}
    attributes = []
    for index, name in enumerate(extra):
        attribute = name if name in _KNOWN else f"extra_{index}"
        attributes.append(attribute)
        if name not in _KNOWN:
            rename[attribute] = name
            fields.append((attribute, Any, None))
    row_type: type[CodedRow] = CodedRow
    if fields:
        extended = msgspec.defstruct("ExtendedRow", fields, bases=(CodedRow,), rename=rename)
        row_type = cast("type[CodedRow]", extended)
    decoder = msgspec.json.Decoder(row_type)

    def decode(text: bytes) -> CodedRow:
        try:
            return decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRow(explain(error)) from None
        except RecursionError:
            raise BadRow("is not JSON that can be read: nested too deeply") from None

    return decode, tuple(attributes)


_MISSING: Final = re.compile(r"missing required field `(.+?)`")
_EXPECTED: Final = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?$")
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def explain(error: msgspec.DecodeError | UnicodeDecodeError) -> str:
    """Return a decoder's error about a row in one line.

    Examples
    --------
    >>> try:
    ...     msgspec.json.decode(b'{"id": "a"}', type=CodedRow)
    ... except msgspec.ValidationError as error:
    ...     print(explain(error))
    deployment is missing
    """
    text = str(error)
    if match := _MISSING.search(text):
        return f"{match[1]} is missing"
    if match := _EXPECTED.search(text):
        wanted, got, where = match.groups()
        if not where:
            return "is not a JSON object"
        if got == "null":
            return f"{where} is missing"
        choices = " or ".join(_WORDS.get(each, each) for each in wanted.split(" | ") if each != "null")
        return f"{where} must be {choices}, not {_WORDS.get(got, got)}"
    return f"is not JSON: {' '.join(text.split())}"
