"""Data sets of pairs: a stereotype and its contrary. CrowS-Pairs, StereoSet, CLEAR-Bias.

Two sentences that differ in one place become one sentence with a blank, and what fills it in each.
"""

import re
from typing import Final, NamedTuple

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement
from auditor.instrument.loaders.loader import LeftOut, Loader, digest, text_of
from auditor.instrument.pool import BLANK, statement_of

#: How a blank is written.
_GAP: Final = "____"
_PIECES: Final = re.compile(r"[\w'\N{RIGHT SINGLE QUOTATION MARK}-]+|[^\w'\N{RIGHT SINGLE QUOTATION MARK}-]+")


class OptionPair(NamedTuple):
    """A pair of sentences as one sentence with a blank, and what fills it in each."""

    completion: str
    first: str
    second: str


def choice(first: str, second: str) -> OptionPair | None:
    """Find the one place where two sentences differ; none where they differ in more than one.

    Examples
    --------
    >>> choice("My aunt is poor.", "My aunt is very rich.")
    OptionPair(completion='My aunt is ____.', first='poor', second='very rich')
    >>> choice("He washed his car.", "She washed her car.") is None
    True
    """
    first_pieces, second_pieces = _PIECES.findall(first), _PIECES.findall(second)
    start = _shared(first_pieces, second_pieces)
    end = _shared(first_pieces[start:][::-1], second_pieces[start:][::-1])
    spans = ["".join(pieces[start : len(pieces) - end]) for pieces in (first_pieces, second_pieces)]
    words = [_words(span) for span in spans]
    # A word that both share lies between two places; an underscore would lengthen the blank.
    if not all(words) or words[0] & words[1] or any(span != span.strip() for span in spans) or "_" in first:
        return None
    return OptionPair("".join(first_pieces[:start]) + _GAP + "".join(first_pieces[len(first_pieces) - end :]), *spans)


def _shared(first: list[str], second: list[str]) -> int:
    """Count the pieces that two lists begin with alike."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second)))


def _words(text: str) -> set[str]:
    return {piece for piece in _PIECES.findall(text.casefold()) if any(character.isalnum() for character in piece)}


def _statement(record: Record, pair: OptionPair | None) -> Statement:
    if pair is None:
        return statement_of(record)
    options = {"completion": pair.completion, "stereotype_option": pair.first, "counter_option": pair.second}
    return statement_of(record | options)


def _crows_pairs(row: Record) -> Statement:
    """Make the statement of two sentences that differ in the group, one of which is the more stereotyping.

    Both directions are used. In a ``stereo`` pair that sentence is about a disadvantaged group; in an ``antistereo``
    pair it says the contrary of an advantaged group, and the statement's ``source`` says so.
    """
    stereotype, other = text_of(row, "sent_more"), text_of(row, "sent_less")
    direction = text_of(row, "stereo_antistereo")
    if direction not in {"stereo", "antistereo"}:
        raise BadRow("stereo_antistereo must be stereo or antistereo")
    if stereotype == other:
        raise BadRow("sent_more and sent_less are the same")
    record: Record = {
        # The published file numbers its rows in a column without a name.
        "id": f"crows-pairs-{row.get('') or digest(stereotype, other)}",
        "statement": stereotype,
        "category": text_of(row, "bias_type"),
        "source": f"CrowS-Pairs, {direction}",
    }
    return _statement(record, choice(stereotype, other))


CROWS_PAIRS: Final = Loader(
    name="crows-pairs", columns=("sent_more", "sent_less", "stereo_antistereo", "bias_type"), make=_crows_pairs
)


def _stereoset(row: Record) -> Statement:
    """Make the statement of a context with three continuations, one the stereotype and one its contrary.

    Within a sentence (``intrasentence``) the options are the words that differ; between sentences (``intersentence``)
    they are the whole second sentences. The third, unrelated continuation is not used.
    """
    stereotype, other = (_labelled(row, label) for label in ("stereotype", "anti-stereotype"))
    context = text_of(row, "context")
    between = "BLANK" not in context  # it stands for what the continuations of an intrasentence fill in
    record: Record = {
        "id": f"stereoset-{text_of(row, 'id')}",
        "statement": f"{context} {stereotype}" if between else stereotype,
        "category": text_of(row, "bias_type"),
        "source": f"StereoSet, {'intersentence' if between else 'intrasentence'}",
    }
    return _statement(record, _second(context, stereotype, other) if between else choice(stereotype, other))


def _labelled(row: Record, label: str) -> str:
    """Return the sentence that has a gold label."""
    listed = row.get("sentences")
    sentences = [sentence for sentence in listed if isinstance(sentence, dict)] if isinstance(listed, list) else []
    matches = [sentence for sentence in sentences if sentence.get("gold_label") == label]
    if len(matches) != 1:
        raise BadRow(f"sentences must hold one whose gold_label is {label}")
    return text_of(matches[0], "sentence")


def _second(context: str, stereotype: str, other: str) -> OptionPair | None:
    """Put the blank where the second sentence stands, and the full stop that both have behind it."""
    stop = "." if stereotype.endswith(".") and other.endswith(".") else ""
    first, second = stereotype.removesuffix(stop), other.removesuffix(stop)
    same = first.casefold() == second.casefold()
    return None if same or BLANK.search(context) else OptionPair(f"{context} {_GAP}{stop}", first, second)


STEREOSET: Final = Loader(name="stereoset", columns=("id", "bias_type", "context", "sentences"), make=_stereoset)

#: The base prompts of CLEAR-Bias by task: sentence completion ("Complete the sentence with one of the following
#: options: one/other. The sentence, with its blank.") or a choice between two people ("Answer with the letter ...
#: context. Context: the scene. The question? (A): one (B): other").
_PROMPTS: Final = {
    "SC": re.compile(r"^Complete [^:]*options: [^.]*\. (?P<completion>.*_{2,}.*)$"),
    "CTO": re.compile(r"^Answer [^:]* Context: (?P<context>.*[.!?]) (?P<question>[^.!?]*\?) ?\(A\).*\(B\)"),
}
_DASH: Final = re.compile(r"[-\N{EN DASH}]")


def _clear_bias(row: Record) -> Statement:
    """Make the statement of a prompt that names its task, without its instruction: the instrument has its own wordings.

    The columns STEREOTYPE and COUNTER-STEREOTYPE say which option is the stereotype; without them no answer could be
    read.
    """
    task, category, prompt = (text_of(row, name) for name in ("TASK", "BIAS CATEGORY", "PROMPT"))
    stereotype = text_of(row, "STEREOTYPE")
    if task not in _PROMPTS:
        raise BadRow(f"TASK must be {' or '.join(_PROMPTS)}")
    match = _PROMPTS[task].match(prompt)
    if match is None:
        raise LeftOut("the prompt is not put as the base prompts of its task are")
    parts = match.groupdict()
    if task == "SC":
        # The blanks of the data set are of many lengths.
        parts["completion"] = BLANK.sub(_GAP, parts["completion"])
        text = parts["completion"].replace(_GAP, stereotype)
    else:
        text = f"{parts['context']} {parts['question']} {stereotype.removesuffix('.')}."
    return statement_of(
        {
            "id": f"clear-bias-{digest(prompt)}",
            "statement": text[0].upper() + text[1:],
            "category": category,
            "stereotype_option": stereotype,
            "counter_option": text_of(row, "COUNTER-STEREOTYPE"),
            **parts,
            "intersectional": _DASH.search(category) is not None,
            "source": "CLEAR-Bias",
        }
    )


CLEAR_BIAS: Final = Loader(name="clear-bias", columns=("TASK", "BIAS CATEGORY", "PROMPT"), make=_clear_bias)
