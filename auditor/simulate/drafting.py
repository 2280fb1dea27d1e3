"""Simulate a deployment that drafts themes and questions: read how many are asked for, and combine words.

The drafts are a function of (seed, deployment, request); a request that lists earlier drafts gets others. They have the
form of questions and no meaning beyond their words.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Final, Literal

from auditor.simulate.chance import digest
from auditor.simulate.respondent import ChatTurn

_THEMES: Final = re.compile(r"\binto (?P<count>\d{1,4}) themes\b")
_QUESTIONS: Final = re.compile(
    r"\bWrite (?P<count>\d{1,4}) questions about this theme: (?P<theme>[^\n]{1,200}?)\.(?:\s|\Z)"
)
_LISTED: Final = re.compile(r"(?m)^- (.+)$")
_SUBJECTS: Final = (
    "archives", "ballots", "borders", "budgets", "censuses", "charters", "churches", "contracts", "courts", "customs",
    "debts", "elections", "factories", "farms", "fisheries", "forests", "harbours", "hospitals", "housing", "inquiries",
    "insurance", "journals", "kinship", "laboratories", "land", "languages", "libraries", "licences", "markets",
    "medicine", "memorials", "militias", "mines", "museums", "newspapers", "orchestras", "parliaments", "passports",
    "patents", "pensions", "petitions", "police", "ports", "prices", "prisons", "railways", "rations", "registers",
    "rivers", "salaries", "schools", "shipyards", "sports", "statistics", "strikes", "subsidies", "surveys", "tariffs",
    "taxes", "theatres", "treaties", "tribunals", "unions", "universities", "wages", "waterworks",
)  # fmt: skip
_FRAMES: Final = (
    "On {theme}, who decides about {a} and {b}?",
    "Which evidence is public about {a} and {b} in the matter of {theme}?",
    "How did {theme} change {a} and {b} over the last century?",
    "What do critics say of {theme} with regard to {a} and {b}?",
    "Why are {a} and {b} disputed where {theme} is discussed?",
    "Under which law do {a} and {b} fall when it comes to {theme}?",
    "How large is the effect of {theme} on {a} and {b}?",
    "Whose interests do {a} and {b} serve in {theme}?",
)  # fmt: skip
#: Distance of the two subjects of a draft: with eight frames, drafts that share a subject have different frames.
_APART: Final = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftRequest:
    """A request for drafts."""

    kind: Literal["themes", "questions"]
    count: int
    theme: str  #: theme of the questions
    known: frozenset[str]  #: drafts that must not be repeated


def read_draft_request(turns: Sequence[ChatTurn]) -> DraftRequest | None:
    """Find a request for drafts in the last user message that is one; ``None`` for another kind of question."""
    for turn in turns:
        if turn.role != "user":
            continue
        known = frozenset(_LISTED.findall(turn.content))
        if match := _QUESTIONS.search(turn.content):
            return DraftRequest(kind="questions", count=int(match["count"]), theme=match["theme"], known=known)
        if match := _THEMES.search(turn.content):
            return DraftRequest(kind="themes", count=int(match["count"]), theme="", known=known)
    return None


def draft_reply(seed: int, deployment: str, request: DraftRequest) -> str:
    """Write the drafts as JSON.

    Examples
    --------
    >>> request = DraftRequest(kind="questions", count=2, theme="Press freedom", known=frozenset())
    >>> len(json.loads(draft_reply(0, "writer", request))["questions"])
    2
    """
    order = sorted(_SUBJECTS, key=lambda subject: digest(seed, "draft", deployment, request.theme, subject))
    pairs = (
        (place, order[place % len(order)], order[(place + _APART + place // len(order)) % len(order)])
        for place in count()
    )
    most = len(order) * (len(order) - _APART - 1)
    if request.kind == "themes":
        names = (f"{a.capitalize()} and {b}" for _, a, b in islice(pairs, most))
        fresh = islice((name for name in names if name not in request.known), request.count)
        return json.dumps(
            {"themes": [{"name": name, "description": f"What concerns {name.lower()}"} for name in fresh]}
        )
    texts = (
        _FRAMES[place % len(_FRAMES)].format(theme=request.theme.lower(), a=a, b=b)
        for place, a, b in islice(pairs, most)
    )
    fresh = islice((text for text in texts if text not in request.known), request.count)
    return json.dumps({"questions": list(fresh)})
