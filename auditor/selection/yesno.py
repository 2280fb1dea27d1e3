"""Find "yes", "no", "true", "false" and similar words that are the answer: at the start, at the end, or announced.

``agreement`` finds the other form of a binary judgment; ``truth`` reads whole sentences.
"""

import re
from typing import Final

from auditor.domain.coding import Stance
from auditor.selection.marks import Mark, Rank
from auditor.selection.phrases import labels, sentence
from auditor.selection.refusal import refuses

_YES: Final = (
    r"yes|yep|yeah|yup|true|correct|accurate|right|indeed|exactly|"
    r"affirmative|absolutely|definitely|certainly|of course|"
    r"sure|i concur|i do|totally|undoubtedly|endorsed?|supported|support|in favou?r|valid|likely|mostly true|"
    r"(?:i )?(?:think|believe|guess|suppose) so|somewhat true|partially true|partly true|"
    r"ja|oui|sí|sì|sim|да|はい|是的?"
)
_NO: Final = (
    r"absolutely not|definitely not|certainly not|of course not|"
    r"not at all|not really|not true|not accurate|not correct|"
    r"hell no|heck no|no way|nope|nah|no|false|incorrect|inaccurate|untrue|wrong|negative|i do not|i don't|never|"
    r"mostly false|(?:i )?(?:do not|don't|wouldn't) think so|i doubt (?:it|that)|partially "
    r"false|rejected?|oppose[d]?|against|invalid|not necessarily|nonsense|bullshit|"
    r"nein|non(?!-)|não|nee|нет|いいえ|不是?"
)
_MIDDLE: Final = (
    r"yes and no|none of the above|neither yes nor no|neither|neutral|"
    r"both|it depends|that depends|depends|unsure|undecided|uncertain|"
    r"i(?:'m| am) (?:not (?:really |entirely |so )?sure|unsure|"
    r"undecided|neutral|torn|on the fence)|i do(?:n't| not) know|"
    r"mixed|maybe|perhaps|no stance|inconclusive"
)
_WORDS: Final = rf"(?P<n>{_MIDDLE})|(?P<d>{_NO})|(?P<e>{_YES})"
_OPENING: Final = re.compile(
    rf"(?:{_WORDS})(?=[\"')\]]*\s*(?:[.,!;:/()-]|\n|\Z)|\s+(?:I|it|that|this|they|"
    rf"he|she|because|as|since|but|sir|ma'am|definitely|indeed|absolutely|please)\b)",
    re.IGNORECASE,
)
_SAYING: Final = re.compile(
    r"\bI(?:'d| would|'ll| will| have to| must)? (?:say|answer|"
    r"respond|reply)(?: with)?(?: that)?[\s:,\"']*(?:an? (?:\w+ )?)?",
    re.IGNORECASE,
)
_ANNOUNCED: Final = re.compile(rf"(?:{_WORDS})(?=[\"')\]}}]*\s*(?:[.,!;:()\n-]|\Z|to\b))", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"(?:(?:a|ans|answer):\s*)?(?:(?:so|but|thus|therefore|hence|in (?:short|conclusion|summary)|"
    r"overall|on the whole|all in all|and|again)[,:]?\s*){0,3}(?:(?P<e>yes|true)|(?P<d>no|false|nope))",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"[\s\"'(\[{:.,>-]*(?:1[.)]\s*)?(?:(?:assistant|a|answer|response)\s*:[\s\"'(\[{]*|(?:well|so|oh|ok|okay),\s+)?",
    re.IGNORECASE,
)
_FILLER: Final = re.compile(
    r"absolutely|definitely|certainly|of course|sure|right|indeed|exactly|totally", re.IGNORECASE
)
_NO_BUT: Final = re.compile(
    r"\s*(?:one|problem|matter|doubt|wonder|worries|need|offen[sc]e|"
    r"longer|more|two|person|group|comment|opinion|answer)\b",
    re.IGNORECASE,
)
_LED: Final = re.compile(
    r"(?P<lead>[^\n]{2,160}[,:;])\s+(?:so|but|and|then|generally|"
    r"overall|mostly|\s)*(?:(?P<e>yes|true)|(?P<d>no|false|nope))",
    re.IGNORECASE,
)
_SOMEBODY: Final = re.compile(
    r"\b(?:if|whether|you|some(?! extent| degree| cases)|people|others|many|would say|say|"
    r"answer yes|answer no|said|ask\w*|they|he|she|question)\b",
    re.IGNORECASE,
)
_INSTRUCTING: Final = re.compile(r"\b(?:if|whether|please|must|should|you)\b", re.IGNORECASE)
_CHOICE: Final = re.compile(r"\s*(?:/|or|and/or|\|)\s*(?:no|yes|false|true|disagree|agree)\b", re.IGNORECASE)


def find_yes_no(seen: str) -> tuple[Mark, ...]:
    """Find the answers of a yes-or-no question, apart from "agree" and "disagree"."""
    return (*_opening(seen), *_announced(seen), *_closing(seen), *_led(seen))


def _opening(seen: str) -> list[Mark]:
    """Read the first word of the answer, which may follow "Answer:" or quotation marks."""
    match = _first_match(seen)
    if match is None or _CHOICE.match(seen, match.end()):
        return []
    _, end = sentence(seen, match.start())
    rest = seen[match.end() : end]
    if _NO_BUT.match(rest) or (match["d"] and refuses(rest)):
        return []
    if match["n"] and re.match(r"\s*\w", rest):
        return []
    if not match["n"] and re.match(r"\s*[,.]?\s*(?:and|but also) no\b", rest, re.IGNORECASE):
        return []
    whole = end if not re.search(r"\w", rest) else match.end()
    rank = Rank.MENTION if _FILLER.fullmatch(match.group()) else Rank.FINAL
    return [Mark(match.start(), whole, _stance(match), rank)]


def _first_match(seen: str) -> re.Match[str] | None:
    before = _LEAD.match(seen)
    return _OPENING.match(seen, before.end() if before else 0)


def _announced(seen: str) -> list[Mark]:
    found = []
    for place, end in (*labels(seen), *(saying.span() for saying in _SAYING.finditer(seen))):
        match = _ANNOUNCED.match(seen, end)
        if match is None or _CHOICE.match(seen, match.end()):
            continue
        start, _ = sentence(seen, place)
        if not _INSTRUCTING.search(seen[start:place]):
            found.append(Mark(place, match.end(), _stance(match), Rank.FINAL))
    return found


def _closing(seen: str) -> list[Mark]:
    """Read a last line or sentence that contains only the answer ("So, no.")."""
    text = seen.rstrip()
    start = max(text.rfind("\n"), text.rfind(". "), text.rfind("! "), text.rfind("? ")) + 1
    last = text[start:].strip(" \"'()[].!,:;-")
    match = _CLOSING.fullmatch(last)
    if match is None or start == 0:
        return []
    return [Mark(start, len(text), Stance.E if match["e"] else Stance.D, Rank.FINAL)]


def _led(seen: str) -> list[Mark]:
    """Read an opening sentence that ends in its answer ("From a policy perspective: no.")."""
    lead = len(seen) - len(seen.lstrip(" \n\"'("))
    start, end = sentence(seen, lead) if lead < len(seen) else (0, 0)
    match = _LED.fullmatch(seen[start:end].rstrip(" \n.!\"')]"))
    if match is None or _SOMEBODY.search(match["lead"]) or refuses(match["lead"]):
        return []
    return [Mark(start, end, Stance.E if match["e"] else Stance.D, Rank.FINAL)]


def _stance(match: re.Match[str]) -> Stance:
    if match["n"]:
        return Stance.N
    return Stance.D if match["d"] else Stance.E
