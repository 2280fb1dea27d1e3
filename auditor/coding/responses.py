"""Read ``responses.jsonl``: one row is one response, and every error names file and line.

``null`` means absent; unknown fields are kept. ``SOURCES`` read the files of other projects.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from auditor.counting.conditions import TRAFFIC
from auditor.counting.rows import CONTROLS, DISAMBIGUATED, KEYS, STATEMENT
from auditor.documents.jsonl import BadRow, Record, Rows, Source
from auditor.domain.coding import Selection, Stance
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Option, Question
from auditor.instrument.loaders.bbq import ANSWERS, answers_of, is_disambiguated
from auditor.instrument.loaders.loader import LeftOut
from auditor.selection.choices import letters

#: Fields that must be text if present. The values of the factors are not changed.
_TEXTS: Final = (
    "category", "region", "statement", "stereotype_option", "counter_option", "option_a", "option_b", "perspective",
    "role", "sentiment", "system", "prompt", "finish_reason",
)  # fmt: skip
#: The optional fields of a row that say what was asked.
FIELDS: Final = (
    *(name for name in _TEXTS if name not in {"prompt", "finish_reason"}),
    *("task", "statement_id", "template_id", "intersectional", "options", "keyed", "rubric"),
)
_LABELS: Final = {"E": Stance.E, "N": Stance.N, "D": Stance.D, "R": Stance.R}


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One row: the question, the response, and the original record."""

    id: str
    deployment: str
    task: Task
    question: Question
    answer: Answer
    rubric: str  #: ``statement`` for a question about a statement, or that of a control
    record: Record
    selection: Selection | None = None  #: read already, by the audit profile of client traffic


def read_responses(
    source: Source,
    *,
    make: "Callable[[Record], Response] | None" = None,
    skip_bad: bool = False,
    on_bytes: Callable[[int], None] | None = None,
) -> "ResponseReader":
    """Open responses; iterate over the result once.

    Parameters
    ----------
    source
        JSONL, gzipped or not, or rows in memory.
    make
        Reads one row; raises `LeftOut` for a row without a response. Default: `response_of`.
    skip_bad
        Count bad rows in ``skipped`` instead of raising.
    on_bytes
        Called from time to time with the number of bytes of the file that have been read.
    """
    return ResponseReader(Rows(source, skip_bad=skip_bad, on_bytes=on_bytes), make or response_of)


class ResponseReader:
    """The responses of a file, in its order.

    Attributes
    ----------
    left_out
        How many rows had no response so far, by reason.
    """

    def __init__(self, rows: Rows, make: Callable[[Record], Response]) -> None:
        self._rows = rows
        self._make = make
        self.left_out: Counter[str] = Counter()

    @property
    def skipped(self) -> int:
        """Return the number of bad rows left out so far."""
        return self._rows.skipped

    @property
    def complaints(self) -> tuple[str, ...]:
        """Return the errors of the first few bad rows."""
        return tuple(self._rows.complaints)

    def __iter__(self) -> Iterator[Response]:
        """Yield one response after the other.

        Raises
        ------
        InputError
            At the first bad row, unless bad rows are skipped; for a file without rows; for an unreadable file.
        """
        seen: dict[str, int] = {}
        for line, response in self._rows.read(self._response_or_reason):
            if isinstance(response, str):
                self.left_out[response] += 1
                continue
            first = seen.setdefault(response.id, line)
            if first != line:
                self._rows.complain(line, f"the id {response.id!r} is already that of line {first}")
                continue
            yield response

    def _response_or_reason(self, record: Record) -> Response | str:
        try:
            return self._make(record)
        except LeftOut as reason:
            return str(reason)


def response_of(record: Record) -> Response:
    """Check one record.

    Raises
    ------
    BadRow
        With what is wrong, in one line.
    """
    for name in _TEXTS:
        _text(record, name)
    _identifier(record, "template_id")
    _boolean(record, "intersectional")
    _whole(record, "draw")
    _check_control(record)
    return Response(
        id=_required_id(record),
        deployment=_required_text(record, "deployment"),
        task=_task(record),
        question=_question(record),
        answer=_answer(record),
        rubric=str(record["rubric"]) if record.get("rubric") in CONTROLS else STATEMENT,
        record=record,
    )


def _check_control(record: Record) -> None:
    """Check what says how the question was keyed, and whether it is a control."""
    keyed, rubric = _text(record, "keyed"), _text(record, "rubric")
    if keyed is not None and keyed not in KEYS:
        raise BadRow(f"keyed must be one of {' '.join(KEYS)}, not {keyed!r}")
    if rubric in CONTROLS and not (record.get("statement") or record.get("statement_id")):
        raise BadRow(f"a row of the rubric {rubric} needs a statement")


def _question(record: Record) -> Question:
    question = Question(
        statement=_meant(_text(record, "statement")),
        # Of client traffic it is who asked.
        statement_id=_meant(_identifier(record, "statement_id")) if record.get("task") != TRAFFIC else None,
        stereotype_option=_text(record, "stereotype_option") or None,
        counter_option=_text(record, "counter_option") or None,
        option_a=_text(record, "option_a") or None,
        option_b=_text(record, "option_b") or None,
        options=_options(record),
        prompt=_text(record, "prompt") or None,
        reverse_scale=(record.get("task"), record.get("keyed")) == (Task.RATE, Stance.D),
    )
    _check_pair(question)
    return question


def _answer(record: Record) -> Answer:
    error = record.get("error")
    finish = _text(record, "finish_reason")
    response = record.get("response")
    if response is None and not error and finish != "content_filter":
        raise BadRow("response is missing")
    if response is not None and not isinstance(response, str):
        raise BadRow(f"response must be text, not {_kind(response)}")
    return Answer(text=response, finish_reason=finish, error=str(error) if error else None)


def _options(record: Record) -> tuple[Option, ...]:
    items = record.get("options")
    if items is None:
        return ()
    if not isinstance(items, list):
        raise BadRow(f"options must be a list, not {_kind(items)}")
    options = tuple(_option(place, item) for place, item in enumerate(items, start=1))
    if len(options) < 2:
        raise BadRow("options must hold at least two answers")
    for what in ("marker", "text"):
        named = [value.strip().casefold() for option in options if (value := getattr(option, what))]
        if len(set(named)) < len(named):
            raise BadRow(f"options: two answers have the same {what}")
    return options


def _option(place: int, item: object) -> Option:
    if not isinstance(item, dict):
        raise BadRow(f"options[{place}] must be an object with marker, text and label, not {_kind(item)}")
    marker, text, label = (item.get(name) for name in ("marker", "text", "label"))
    marker = str(marker) if isinstance(marker, int) and not isinstance(marker, bool) else marker
    if not isinstance(marker, str | None) or not isinstance(text, str | None):
        raise BadRow(f"options[{place}]: marker and text must be text")
    if not (marker or "").strip() and not (text or "").strip():
        raise BadRow(f"options[{place}] has neither marker nor text")
    if not isinstance(label, str) or label not in _LABELS:
        raise BadRow(f"options[{place}]: label must be one of {' '.join(_LABELS)}, not {label!r}")
    return Option(marker=(marker or "").strip(), text=(text or "").strip(), stance=_LABELS[label])


def _check_pair(question: Question) -> None:
    """Reject options that do not identify the stereotype, because their letters would have no meaning."""
    stereotype, counter = question.stereotype_option, question.counter_option
    if stereotype and counter and stereotype.strip().casefold() == counter.strip().casefold():
        raise BadRow("stereotype_option and counter_option are the same")
    if question.option_a and question.option_b and question.option_a.strip() == question.option_b.strip():
        raise BadRow("option_a and option_b are the same")
    named = question.option_a or question.option_b
    if named and stereotype and counter and not letters(stereotype, counter, question.option_a, question.option_b):
        raise BadRow("it is not clear which of option_a and option_b is the stereotype_option")


def _task(record: Record) -> Task:
    code = _required_text(record, "task")
    if code == TRAFFIC:
        return Task.EXPLAIN  # no task of ours: the whole answer is free text
    try:
        return Task(code)
    except ValueError:
        raise BadRow(f"task must be one of {' '.join(Task)}, not {code!r}") from None


def _required_id(record: Record) -> str:
    identifier = _identifier(record, "id")
    if identifier is None or not identifier.strip():
        raise BadRow("id is missing" if identifier is None else "id is empty")
    return identifier


def _required_text(record: Record, name: str) -> str:
    text = _text(record, name)
    if text is None or not text.strip():
        raise BadRow(f"{name} is missing" if text is None else f"{name} is empty")
    return text


def _text(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"{name} must be text, not {_kind(value)}")
    return value


def _meant(text: str | None) -> str | None:
    return text if text is not None and text.strip() else None


def _identifier(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadRow(f"{name} must be text or a whole number, not {_kind(value)}")


def _boolean(record: Mapping[str, object], name: str) -> None:
    value = record.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRow(f"{name} must be true or false, not {_kind(value)}")


def _whole(record: Mapping[str, object], name: str) -> None:
    value = record.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise BadRow(f"{name} must be a whole number, not {_kind(value)}")


def _kind(value: object) -> str:
    """Return the kind of a JSON value in words."""
    if isinstance(value, bool):
        return "true or false"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "text"), ((int, float), "a number"), (list, "a list"), (dict, "an object"),
    )  # fmt: skip
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def from_decodingtrust(record: Record) -> Record:
    """Translate one generation of DecodingTrust's stereotype perspective.

    The task is a binary judgment with an explanation; the system prompt (benign, untargeted, targeted) is the role.
    """
    texts = {name: _foreign_text(record, name) for name in ("model", "sys", "statement", "text")}
    gen = record.get("gen")
    if not isinstance(gen, int) or isinstance(gen, bool):
        raise BadRow("gen must be a whole number")
    statement = texts["statement"]
    kept = {name: value for name, value in record.items() if name not in {"model", "sys", "statement", "text", "gen"}}
    return {
        "id": "|".join((texts["model"], texts["sys"], statement, str(gen))),
        "deployment": texts["model"],
        "task": "BJ",
        "response": texts["text"],
        "statement_id": hashlib.sha256(statement.encode()).hexdigest()[:12],
        "statement": statement,
        "category": record.get("topic"),
        "role": texts["sys"],
        "draw": gen,
        **{f"source_{name}": value for name, value in kept.items()},
    }


def _foreign_text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise BadRow(f"{name} is missing" if value is None else f"{name} must be text")
    return value


def from_bbq(record: Record) -> list[Record]:
    """Translate one BBQ item with recorded answers: one row for each field ``<model>_pred_<format>``.

    The deployment is ``<model>/<format>``. The three offered answers are the options. A scene that gives the answer has
    the rubric ``disambiguated``; the others are statements. An item that does not tell who is the stereotyped person
    has no row. ``topic`` is the item's template, because its items differ in a few words only.
    """
    try:
        stereotype, counter = answers_of(record)
    except LeftOut:
        return []
    labels = {stereotype: "E", counter: "D"}
    options = [{"text": _foreign_text(record, name), "label": labels.get(name, "N")} for name in ANSWERS]
    context, question, category = (_foreign_text(record, name) for name in ("context", "question", "category"))
    answer = record[stereotype]
    shared: Record = {
        "task": "CTO",
        "statement_id": f"bbq-{category}-{record.get('example_id')}",
        "statement": f"{context} {question} {answer}",
        "category": category,
        "topic": f"{category}-{record.get('question_index')}",
        "options": options,
        "rubric": DISAMBIGUATED if is_disambiguated(record) else STATEMENT,
    }
    columns = (name.partition("_pred_") for name in record if "_pred_" in name)
    return [
        {
            "id": f"{model}/{form}|{category}|{record.get('example_id')}",
            "deployment": f"{model}/{form}",
            "response": _foreign_text(record, f"{model}_pred_{form}"),
            **shared,
        }
        for model, _, form in columns
    ]


#: The known files, by the name that ``import-responses --format`` takes; a row of one may have several responses.
SOURCES: Final[dict[str, Callable[[Record], Sequence[Record]]]] = {
    "bbq": from_bbq,
    "decodingtrust": lambda record: [from_decodingtrust(record)],
}
