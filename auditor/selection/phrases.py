"""Define parts of patterns that several finders share, and find the borders of a sentence."""

import re
from collections.abc import Iterator
from typing import Final

from auditor.selection.marks import Span

#: Words between a speaker and a verb, or before the verb, that do not change the meaning.
ADVERB: Final = (
    r"(?:strongly|completely|totally|entirely|fully|wholly|whole-?heartedly|absolutely|definitely|certainly|very much|"
    r"generally|mostly|largely|partially|partly|somewhat|slightly|mildly|moderately|respectfully|politely|kindly|"
    r"vehemently|firmly|actually|really|honestly|simply|just|also|still|tend to|strong(?:ly)?|utterly|100 ?%|fucking|"
    r"wholehearted|complete(?:ly)?|highly|broadly|basically|overall|categorically|unequivocally|deeply|profoundly)"
)

#: Words that introduce an answer.
_LEAD: Final = (
    r"so|thus|therefore|hence|then|well|anyway|overall|finally|ultimately|honestly|frankly|personally|actually|clearly|"
    r"obviously|however|but|and|also|yes|no|nope|yeah|oh|ok(?:ay)?|sure|hi|hello|sorry|fine|"
    r"in (?:short|summary|conclusion|fact|brief|the end|general|all "
    r"honesty)|to (?:conclude|summari[sz]e|be honest|answer[^,.\n]{0,40})|"
    r"as (?:an? |the |your )[^,.\n]{1,60},|(?:for|given|based on|considering|after|with) [^,.\n]{1,80},|"
    r"in my (?:humble |honest )?(?:opinion|view)|"
    r"(?:I (?:would |will |'d |'ll |must |have to )?|I'd |I'll "
    r")?(?:say|answer|respond|reply|conclude|go with)(?: with| that)?|"
    r"(?:my |the |your )?(?:final |short |correct |honest |overall "
    r")?(?:answer|response|view|position|stance|opinion|verdict|"
    r"conclusion|judge?ment|choice|selection|reply|statement)(?: "
    r"to [^:.\n]{1,60})?(?: is| would be| remains|:)(?: that)?|"
    r"here(?:'s| is) my [\w ]{1,24}:?|assistant:|a:|>"
)
LEAD_IN: Final = re.compile(
    rf"[\s,:;.\"'()\[\]{{}}-]*(?:(?:{_LEAD})(?![a-z])[\s,:;.\"'()\[\]{{}}-]*){{0,6}}\Z", re.IGNORECASE
)

#: Names that announce an answer, in prose ("My final answer is:") and in JSON ("final_answer":).
LABEL: Final = (
    r"(?:answer|antwort|respuesta|réponse|risposta|resposta|choice|pick|option|selection|verdict|response|stance|position|decision|conclusion|judge?ment|vote|label|"
    r"agreement|agree|opinion|preference|perspective|feelings?|thoughts?|view|therefore|thus|hence|select|chosen|selected|prediction|result)"
    r"(?: (?:to|for|on|about|of|regarding) [^:\n.]{1,120}?| \([^)\n]{1,24}\)| here| letter)?"
    r"[\"']?\s*(?::|=|->|\bis\b|\bare(?: as follows)?\b|\bwould be\b|\bwould have to be\b)\s*(?:\bis\b|:)?"
    r"[\s\"'(\[{]*(?:(?:that|"
    r"to|the|clearly|simply|a|an|clear|firm|definite|definitely|resounding|strong)\s+)*[\"'(\[]*"
)

_LABEL: Final = re.compile(rf"\b{LABEL}", re.IGNORECASE)
_QUALIFIED: Final = re.compile(
    r"(?:(?:my|the|final|correct|best|short|overall|selected|chosen|"
    r"right|most (?:appropriate|likely|accurate)|appropriate)[ -]+)"
    r"{1,3}\Z",
    re.IGNORECASE,
)

#: An option or whole answer without a subject that says "unknown": nobody declines to answer here.
CANNOT_TELL: Final = re.compile(
    r"(?:(?:it )?(?:can(?:no|')t|can not|could not|couldn't) "
    r"(?:be (?:determined|answered|inferred|known|said|established)|answer|tell|say|determine|know)"
    r"(?: (?:from|based on|with) [^.\n]{1,40})?|"
    r"unknown|undetermined|not known|unanswerable|not answerable|not enough (?:info\w*|context|evidence|data)|"
    r"(?:insufficient|no) (?:info\w*|context|evidence)|neither(?: of them| one)?|none of (?:the above|them))\Z",
    re.IGNORECASE,
)

#: The limit of a sentence on each side of a place, so that the time to read a text is proportional to its length.
_LONGEST: Final = 600
_BREAK: Final = re.compile(r"[!?\n]|\.(?!\d)")


def sentence(text: str, place: int) -> Span:
    """Return the sentence around ``place``, with its closing punctuation and quotation marks."""
    start = max(0, place - _LONGEST)
    for stop in _BREAK.finditer(text, start, place):
        start = stop.end()
    # The end of the sentence before. Without such an end, a quotation mark belongs to this sentence.
    while 0 < start < place and text[start] in "\"')]":
        start += 1
    furthest = min(len(text), place + _LONGEST)
    end = _BREAK.search(text, place, furthest)
    stop_at = end.end() if end else furthest
    while stop_at < len(text) and text[stop_at] in "\"')]":
        stop_at += 1
    return start, stop_at


def labels(text: str) -> Iterator[Span]:
    """Find every announcement of an answer: where it starts, and where the answer starts."""
    for match in _LABEL.finditer(text):
        start = match.start()
        qualified = _QUALIFIED.search(text, max(0, start - 40), start)
        yield (qualified.start() if qualified else start), match.end()


def is_label(text: str) -> bool:
    """Return whether ``text`` ends by announcing an answer."""
    return any(end == len(text) for _, end in labels(text))


def leads_in(text: str) -> bool:
    """Return whether ``text`` only introduces an answer ("So, my answer is: ")."""
    return len(text) < 400 and LEAD_IN.match(text) is not None
