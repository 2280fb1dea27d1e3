"""Decide whether a verb in a sentence is the response's own assertion, and whether it is negated.

``agreement`` calls this for each "agree" and "disagree", ``pairs`` for both together. Reported speech, conditions,
possibilities and quotations are not assertions; a quotation that is the whole answer is an assertion.
"""

import re
from dataclasses import dataclass
from typing import Final

from auditor.selection.phrases import ADVERB, is_label, leads_in

_SPEAKER: Final = re.compile(r"(?<!\w)(?:I|we)(?:'(?:d|ll|m|ve|re))?(?=[\s,])", re.IGNORECASE)
_BLOCKED: Final = re.compile(
    r"\b(?:that|if|whether|you|they|people|some|others|many|who|she|he|one|because|understand|hope|know|see|ask|want|"
    r"need|think|encourage|urge|invite|respect|appreciate|acknowledge|recogni[sz]e|believe|your|why|when|unless|until|"
    r"might|may|ought|used to|please|include|should (?:I|you)|say|did|had)\b|[\"]",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(
    r"\b(?:not|never|cannot|neither|hardly|unable|refuse|decline|\w+n't|no way|nowhere)\b", re.IGNORECASE
)
_UNABLE: Final = re.compile(
    r"\b(?:cannot|can not|can't|could not|couldn't|unable|not able|"
    r"won't|will not|refrain|abstain|wouldn't|would not|refuse|decline|"
    r"not (?:programmed|designed|allowed|permitted|appropriate|"
    r"in a position|possible|within|capable|my (?:place|role|job)|"
    r"comfortable|supposed|going)|inappropriate|incapable|do(?:n't| not) (?:have|possess|hold)|impossible)\b",
    re.IGNORECASE,
)
_NOT_ASSERTED: Final = re.compile(
    r"(?:\bif|\bwhen|\bwhether|\bunless|\buntil|\bhow (?:much|far|strongly)|"
    r"\bextent(?: to which)?|\bassum\w+|\bsuppos\w+|"
    r"(?:n't|\b(?:not|never|want me to|(?<!have )(?<!like )(?<!need )(?<!going )to|please|"
    r"cannot))\s+(?:\w+\s+){0,2}?(?:say|claim|pretend|mean|state|think|imply|suggest))"
    r"(?:\s+that)?[\s\"']*\Z",
    re.IGNORECASE,
)
#: With more words than this between them, speaker and verb are taken as parts of different sentences.
_FAR: Final = 160
_LOVES_TO_AGREE: Final = re.compile(r"(?:can(?:no|')?t|can not|cannot) (?:help but|but)\b", re.IGNORECASE)
_COORDINATED: Final = re.compile(
    r"\b(?:and|but|so)\s+(?:(?:therefore|thus|hence|so|also|respectfully|"
    r"strongly|completely|totally|do|not|don't|cannot|can't|must|"
    r"have|to|would|will|wholeheartedly)[\s,]+)*\Z",
    re.IGNORECASE,
)
_ANSWER_QUOTE: Final = re.compile(r"(?:[,:-]|\b(?:say|answer|respond|conclude|with))\s*\"\s*\Z", re.IGNORECASE)
_INSTRUCTING: Final = re.compile(
    r"\b(?:not|never|\w+n't|cannot|include|must|should|forget|if|"
    r"instead|require\w*|phrase|statement|use|using|your|saying|asked me|"
    r"want|please|writ\w+|add\w*|either|or)\b",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"\b(?:you|they|people|others|who|he|she|one|everyone|everybody|us)\b", re.IGNORECASE)
_IN_AGREEMENT: Final = re.compile(
    rf"\b(?:in|(?:express|state|voice|declare)(?:\s+my)?)\s+(?:{ADVERB}\s+|full\s+|total\s+|strong\s+)*\Z",
    re.IGNORECASE,
)
_WISHED: Final = re.compile(r"\b(?:would|'d) (?:like|love|prefer) to\b|\bwish (?:that )?I could\b", re.IGNORECASE)
_ALONE: Final = re.compile(rf"(?:do\s+not\s+|don't\s+)?(?:{ADVERB}[\s,]+)*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assertion:
    """One occurrence of a verb that is the response's own assertion."""

    start: int  #: the start of the assertion: its speaker
    negated: bool = False
    unable: bool = False  #: negated as "cannot", "will not"
    wished: bool = False  #: "I would like to", "I wish I could"
    quoted: bool = False  #: inside quotation marks: an answer only if there is no other


def has_speaker(text: str) -> bool:
    """Return whether the text has a first-person speaker."""
    return _SPEAKER.search(text) is not None


def is_negated(text: str) -> bool:
    """Return whether the text contains a negation."""
    return _NEGATED.search(text) is not None


def is_unable(text: str) -> bool:
    """Return whether the text contains "cannot", "will not", "it is not for me to"."""
    return _UNABLE.search(text) is not None


def find_assertion(before: str, form: str, *, opening: bool) -> Assertion | None:
    """Find the speaker of a verb.

    Parameters
    ----------
    before
        The sentence up to the verb; ``Assertion.start`` counts from its start.
    form
        The verb's ending: "", "d", "ing", "ment".
    opening
        Whether this sentence opens the response; quotation marks around the whole response are then ignored.

    Returns
    -------
    Assertion or None
        ``None`` if the speaker is not the response, or if nothing is asserted.
    """
    if form == "ment" and not _IN_AGREEMENT.search(before):
        return None
    speakers = list(_SPEAKER.finditer(before))
    if not speakers:
        return None if form == "ing" else _without_speaker(before)
    place = speakers[-1].start()
    if form == "d" and not (opening and before.strip(" \n\"'(") == "I"):
        return None
    gap = before[place:]
    if len(gap) > _FAR:
        return None
    if (coordinated := _COORDINATED.search(gap)) and not _OTHERS.search(gap[: coordinated.start()]):
        gap = coordinated.group()
        place = len(before) - len(gap)
    lead = before[:place]
    if _BLOCKED.search(gap) or _NOT_ASSERTED.search(lead[-_FAR:]) or _in_foreign_quotes(lead):
        return None
    negated = is_negated(gap) and not _LOVES_TO_AGREE.search(gap) and "not only" not in gap
    quoted = (
        lead.rstrip().endswith(('"', "'", "("))
        and before.count('"') % 2 == 1
        and not (opening and not lead.strip(" \n\"'("))
    )
    return Assertion(place, negated, negated and is_unable(gap), _WISHED.search(before[place:]) is not None, quoted)


def _in_foreign_quotes(lead: str) -> bool:
    """Return whether the words after ``lead`` are a quotation that is not the response's own answer."""
    if lead.endswith("'"):
        return not leads_in(lead)
    is_answer = leads_in(lead) or (_ANSWER_QUOTE.search(lead) is not None and _INSTRUCTING.search(lead) is None)
    return lead.count('"') % 2 == 1 and not is_answer


def _without_speaker(before: str) -> Assertion | None:
    """Read "Agree.", "Strongly disagree with this", "Answer: disagree"."""
    alone = _ALONE.search(before)
    lead = before[: alone.start()] if alone else before
    if not (leads_in(lead) or is_label(lead)):
        return None
    return Assertion(len(lead), is_negated(before[len(lead) :]))
