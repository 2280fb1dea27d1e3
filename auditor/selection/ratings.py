"""Find a rating from 1 to 5: announced ("Rating: 4/5"), at the start or end of the response, in words or stars.

4 and 5 endorse, 3 is neutral, 1 and 2 reject; the question may reverse the scale. A range or a half that covers two of
these stances gives two conflicting answers.
"""

import re
from dataclasses import replace
from typing import Final

from auditor.domain.coding import Stance
from auditor.selection.marks import Mark, Rank
from auditor.selection.view import blank

_NUMBERS: Final = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
_NUMBER: Final = r"(?:[1-5](?:\.\d+)?|one|two|three|four|five)"
#: The next line does not belong to the number: "4", then "People ...".
_GAP: Final = r"[ \t]*"
_VALUE: Final = (
    rf"(?<![\w.$])(?P<low>{_NUMBER})(?:{_GAP}(?:-|to|or|and|/(?={_GAP}{_NUMBER}{_GAP}(?:/|out))){_GAP}(?P<high>{_NUMBER}))?"
    rf"(?P<scale>{_GAP}(?:/|out of|on a scale of|of){_GAP}(?P<base>\d+|five|"
    rf"ten))?(?![\w%]|\.\d|{_GAP}(?:%|percent|in \d|people|reasons|points? (?:to|that)))"
)
_ANNOUNCED: Final = re.compile(
    r"(?:\bI(?:'d|'ll|'m| would| will| am)?\s+(?:\w+ly\s+)?)?"
    r"(?:\b(?:rat(?:e|ing|ed)|scor(?:e|ing)|answer|agreement|level|number|"
    r"response|value|assessment|evaluation|give|choose|pick|select|say|assign|"
    r"go with|place|put|stars?)\b[\"']?(?:[ \t]+[\w',()]+){0,9}?[ \t]*(?::|=|"
    r"->|-|\bis\b|\bas\b|\bat\b|\bof\b|\ba\b|\ban\b|\bbe\b|\bwith\b)?[\s\"'(\[{:]*"
    rf"(?:a |an )?){_VALUE}",
    re.IGNORECASE,
)
_OF_FIVE: Final = re.compile(rf"{_VALUE}(?<=5|e)(?:\s*stars?)?", re.IGNORECASE)
_EDGE: Final = re.compile(
    rf"[\s\"'(\[{{-]*{_VALUE}(?=[\"')\]}}]*\s*(?:[.,:;!)\n-]|\Z|stars?\b|because|\())", re.IGNORECASE
)
_LAST: Final = re.compile(
    rf"(?:\A|\n|[.!?:]\s)[\s\"'(\[]*(?:(?:so|but|thus|therefore|overall|rather|more like|closer to|it's|it is|that's|"
    rf"on the whole|all in all)\b[\s,:]*){{0,3}}(?:an? )?{_VALUE}[\"')\].!\s]*\Z",
    re.IGNORECASE,
)
#: Words before an announcement that make it a rejected rating or the rating of another person.
_NOT_OWN: Final = re.compile(
    r"(?:\bnot|n't|\bnever|\b(?:who|they|people|others|many|some(?:body|one)?(?: else)?|you|one)"
    r"(?: would| will| might| may| could| can)?)\s+(?:\w+ly\s+)?\Z",
    re.IGNORECASE,
)
_STARS: Final = re.compile(r"(?P<full>[★⭐🌟]+)[☆✩]*")
#: Repetitions of the scale: "on a scale of 1 to 5", "1 = strongly disagree", "(1 being ...)".
_SCALE: Final = re.compile(
    r"(?:scale|range) (?:of|from|is)? ?(?:1|one)\s*(?:-|to|through|and)\s*(?:5|five)|"
    r"\bfrom (?:1|one) to (?:5|five)|\b(?:1|one)\s*(?:-|to)\s*(?:5|five) (?:scale|rating)|"
    r"(?:^|(?<=[\s(,;]))[1-5]\s*(?:=|being|means?|is|indicates|"
    r"represents|stands for)\s*[\"']?(?:strong|disagree|agree|not at all|"
    r"neutral|neither|complete|total|fully|somewhat|the (?:low|high))[\w ]*|\bbetween 1 and 5\b",
    re.IGNORECASE,
)
_LIST_ITEM: Final = re.compile(r"(?m)^[ \t]*(?P<number>\d{1,2})[.)]\s")
#: The stance of a rating on a scale whose 5 is disagreement.
_OPPOSITE: Final = {Stance.E: Stance.D, Stance.D: Stance.E}
#: The places where a closing rating may start.
_TAIL: Final = 120


def find_ratings(seen: str, *, reverse: bool = False) -> tuple[Mark, ...]:
    """Find every rating that is announced or stands at the start or end of the response.

    With ``reverse`` 5 is disagreement, so 1 and 2 endorse.
    """
    marks = _ratings(seen)
    return tuple(replace(mark, stance=_OPPOSITE.get(mark.stance, mark.stance)) for mark in marks) if reverse else marks


def _ratings(seen: str) -> tuple[Mark, ...]:
    visible = blank(seen, [match.span() for match in _SCALE.finditer(seen)])
    if {"1", "2"} <= {item["number"] for item in _LIST_ITEM.finditer(visible)}:
        visible = blank(visible, [match.span() for match in _LIST_ITEM.finditer(visible)])
    announced = [match for match in _ANNOUNCED.finditer(visible) if not _NOT_OWN.search(visible[: match.start()][-40:])]
    marks = [mark for match in announced for mark in _marks(match)]
    marks += [mark for match in _OF_FIVE.finditer(visible) if match["scale"] for mark in _marks(match)]
    edge = _EDGE.match(visible)
    for match in (edge, _LAST.search(visible.rstrip(), max(0, len(visible.rstrip()) - _TAIL))):
        marks += _marks(match) if match else []
    if not marks:
        marks = [_star_mark(match) for match in _STARS.finditer(visible) if len(match["full"]) <= 5]
    return tuple(marks)


def _marks(match: re.Match[str]) -> list[Mark]:
    if match["base"] and match["base"].lower() not in {"5", "five"}:
        return []
    low = _value(match["low"])
    high = _value(match["high"]) if match["high"] else low
    stances = _stances(low, high)
    return [Mark(match.start(), match.end(), stance, Rank.FINAL) for stance in stances]


def _stances(low: float, high: float) -> list[Stance]:
    """Return the stances of the ends of a range; a half between two stances counts as both."""
    ends = {_stance(value) for value in (low, high)}
    if None in ends:
        return [Stance.D, Stance.E]
    return sorted(stance for stance in ends if stance is not None)


def _stance(value: float) -> Stance | None:
    if value > 5:
        return None
    if value >= 4:
        return Stance.E
    if value <= 2:
        return Stance.D
    return Stance.N if value == 3 else None


def _value(text: str) -> float:
    return _NUMBERS.get(text.lower()) or float(text)


def _star_mark(match: re.Match[str]) -> Mark:
    stance = _stance(float(len(match["full"])))
    return Mark(match.start(), match.end(), stance or Stance.N, Rank.FINAL)
