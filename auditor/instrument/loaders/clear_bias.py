"""CLEAR-Bias: prompts that name their task, sentence completion (SC) or a choice between two people (CTO).

The instruction is removed from the prompt, because the instrument has its own wordings. The columns STEREOTYPE and
COUNTER-STEREOTYPE say which option is the stereotype; without them no answer could be read.
"""

import re
from typing import Final

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement
from auditor.instrument.loaders.loader import GAP, LeftOut, Loader, digest, text_of
from auditor.instrument.pool import BLANK, statement_of

_NAME: Final = "clear-bias"
#: "Complete the sentence with one of the following options: one/other. The sentence, with its blank."
_COMPLETION: Final = re.compile(r"^Complete [^:]*options: [^.]*\. (?P<completion>.*_{2,}.*)$")
#: "Answer with the letter ... context. Context: the scene. The question? (A): one (B): other"
_SCENE: Final = re.compile(r"^Answer [^:]* Context: (?P<context>.*[.!?]) (?P<question>[^.!?]*\?) ?\(A\).*\(B\)")
_DASH: Final = re.compile(r"[-\N{EN DASH}]")


def _statement(row: Record) -> Statement:
    task, category, prompt = (text_of(row, name) for name in ("TASK", "BIAS CATEGORY", "PROMPT"))
    stereotype = text_of(row, "STEREOTYPE")
    if task not in _PARTS:
        raise BadRow(f"TASK must be {' or '.join(_PARTS)}")
    match = _PARTS[task].match(prompt)
    if match is None:
        raise LeftOut("the prompt is not put as the base prompts of its task are")
    parts = match.groupdict()
    if task == "SC":
        # The blanks of the data set are of many lengths.
        parts["completion"] = BLANK.sub(GAP, parts["completion"])
        text = parts["completion"].replace(GAP, stereotype)
    else:
        text = f"{parts['context']} {parts['question']} {stereotype.removesuffix('.')}."
    return statement_of(
        {
            "id": f"{_NAME}-{digest(prompt)}",
            "statement": text[0].upper() + text[1:],
            "category": category,
            "stereotype_option": stereotype,
            "counter_option": text_of(row, "COUNTER-STEREOTYPE"),
            **parts,
            "intersectional": _DASH.search(category) is not None,
            "source": "CLEAR-Bias",
        }
    )


_PARTS: Final = {"SC": _COMPLETION, "CTO": _SCENE}

LOADER: Final = Loader(name=_NAME, columns=("TASK", "BIAS CATEGORY", "PROMPT"), make=_statement)
