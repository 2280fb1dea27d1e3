"""Finds "I agree" and "I disagree" where the response says it of the statement, in its own voice.

Not counted: other people's agreement, conditions and possibilities, quotations, questions, and agreement with something
else (``about``). "Agree or disagree" together is neither, a refusal or an echo, as the words before it say.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from auditor.domain.coding import Stance
from auditor.selection.about import About, about_clause, about_object
from auditor.selection.marks import Found, Mark, Rank, Refusal
from auditor.selection.phrases import ADVERB, is_label, leads_in, sentence

_TOKEN: Final = re.compile(
    r"\b(?P<dis>dis)?agree(?P<form>ment|ing|d|(?!\w))|\b(?P<concur>concur)\b|\b(?P<differ>beg to differ)\b",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    r"\b(?:strongly )?(?:dis)?agree(?:ment|ing|s|d)?[\"'.]*\s*(?:/|\|\||\bor\b|\bnor\b|\band/or\b|\band\b|\bvs\.?\b|,)\s*"
    r"(?:(?:to|in|with|express|I|my|either|even|partly|partially|strongly|that I|also|say|do not|don't|not)\s+){0,3}[\"']*"
    r"(?:I\s+)?(?:strongly )?(?:dis)?agree(?:ment|ing|s|d)?(?!\w)",
    re.IGNORECASE,
)
_BARE_PAIR: Final = re.compile(r"\b(?:I\s+)?agree[.\"']*\s+(?:I\s+)?disagree\b(?=\s*(?:\n|$))", re.IGNORECASE)
_SPEAKER: Final = re.compile(r"(?<!\w)(?:I|we)(?:'(?:d|ll|m|ve|re))?(?=[\s,])", re.IGNORECASE)
#: Between the speaker and the verb these make the verb somebody else's, or no assertion.
_BLOCKED: Final = re.compile(
    r"\b(?:that|if|whether|you|they|people|some|others|many|who|she|he|one|because|understand|hope|know|see|ask|want|"
    r"need|think|encourage|urge|invite|respect|appreciate|acknowledge|recogni[sz]e|believe|your|why|when|unless|until|"
    r"might|may|used to|please|include|should (?:I|you)|say|did|had)\b|[\"]",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(
    r"\b(?:not|never|cannot|neither|hardly|unable|refuse|decline|\w+n't|no way|nowhere)\b", re.IGNORECASE
)
_UNABLE: Final = re.compile(
    r"\b(?:cannot|can not|can't|could not|couldn't|unable|not able|won't|will not|wouldn't|would not|refuse|decline|"
    r"not (?:programmed|designed|allowed|permitted|appropriate|in a position|possible|within|capable|my (?:place|role|job)|"
    r"comfortable|supposed|going)|inappropriate|incapable|do(?:n't| not) (?:have|possess|hold)|impossible)\b",
    re.IGNORECASE,
)
#: "I can say I agree" is an answer; "if I agree", "to say I agree", "I cannot say I agree" are not.
_NOT_SAID: Final = re.compile(
    r"(?:\bif|\bwhether|\bunless|\buntil|\bhow (?:much|far|strongly)|\bextent(?: to which)?|\bassum\w+|\bsuppos\w+|"
    r"\b(?:not|never|n't|want me to|(?<!have )(?<!like )(?<!need )(?<!going )to|please|cannot)\s+(?:\w+\s+){0,2}?(?:say|claim|pretend|mean|state|think|imply|suggest))"
    r"(?:\s+that)?[\s\"']*\Z",
    re.IGNORECASE,
)
_LOVES_TO_AGREE: Final = re.compile(r"(?:can(?:no|')?t|can not|cannot) (?:help but|but)\b", re.IGNORECASE)
_ASKING: Final = re.compile(
    r"\s*(?:[\"']\s*)?(?:do|does|did|would|should|could|can|why|what|how|who|which|is|are|or|if|whether)\b",
    re.IGNORECASE,
)
#: "I see what you mean, and therefore do not agree": the speaker goes on.
_COORDINATED: Final = re.compile(
    r"\b(?:and|but|so)\s+(?:(?:therefore|thus|hence|so|also|respectfully|strongly|completely|totally|do|not|don't|cannot|can't|must|"
    r"have|to|would|will|wholeheartedly)[\s,]+)*\Z",
    re.IGNORECASE,
)
_IN_AGREEMENT: Final = re.compile(rf"\bin\s+(?:{ADVERB}\s+|full\s+|total\s+)*\Z", re.IGNORECASE)
_ALONE: Final = re.compile(rf"(?:do\s+not\s+|don't\s+)?(?:{ADVERB}[\s,]+)*\Z", re.IGNORECASE)
#: What may follow the verb and leave it complete.
_BARE_TAIL: Final = re.compile(
    rf"[\s\"']*(?:{ADVERB}[\s\"']*|here\b|too\b|as well\b|though\b|overall\b|indeed\b)*(?:\Z|[.!?,;:()\[\]{{}}/>-]|\bbecause\b|\bas\b|"
    r"\bsince\b|\bbut\b|\band\b|\bso\b|\bhowever\b|\bdue\b|\bfor\b|\bgiven\b|\bbased\b|\balthough\b|\bwhile\b|\bwhen\b|"
    r"\bdepending\b|\bin (?:part|general|principle|this|that)\b)",
    re.IGNORECASE,
)
_SHORT_OBJECT: Final = re.compile(
    r"\s*(?:with|on)\s+(?:you|this|that|it|(?:your|this|that|the)\s+(?:\w+\s+){0,2}?(?:statement|claim|view|opinion|proposition|"
    r"sentiment|assertion|idea|notion))(?=[\s\"']*(?:\Z|[.!?,;:)]))",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(
    r"[.!?,;:()\n]|\s-\s|\b(?:because|since|but|however|although)\b|\b(?:as|and) (?:it|this|that|I|they|the|such)\b"
)
_NO_OPINION: Final = re.compile(
    r"\b(?:no|without|not? have|n't have|cannot have|any) (?:personal |own )?(?:opinions?|beliefs?|views?)",
    re.IGNORECASE,
)
_WITH: Final = re.compile(r"\s*[\"']*\s*(?:with|on|about|to)\s+", re.IGNORECASE)
#: ``"agree": false``: the name of a field, not the answer.
_FIELD: Final = re.compile(r"[\"']?\s*[:=]\s*[\"']?(?:true|false|yes|no|\d)\b", re.IGNORECASE)
_MORE: Final = re.compile(r"\s+(?:any\s+)?more\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    """One occurrence of the verb in its sentence."""

    start: int  #: where the mark starts: at the speaker
    negated: bool
    unable: bool
    quoted: bool


def find_agreement(seen: str, statement: str | None) -> Found:
    """Find every mark of agreement or disagreement, refusals to give one, and the pair offered as it was asked."""
    marks: list[Mark] = []
    refused = echo = False
    pairs = list(_pairs(seen))
    for pair in pairs:
        stance, declined, mark = _read_pair(seen, pair)
        refused |= declined
        echo |= stance is None and not declined
        marks += [mark] if mark else []
    for token in _TOKEN.finditer(seen):
        if any(pair.start() <= token.start() < pair.end() for pair in pairs):
            continue
        found = _read_token(seen, token, statement)
        if isinstance(found, Mark):
            marks.append(found)
        refused |= found is Refusal.PLAIN
    return Found(marks=tuple(marks), refusal=Refusal.PLAIN if refused else None, echo=echo)


def _pairs(seen: str) -> Iterator[re.Match[str]]:
    """Find "agree or disagree" in all its forms; there is none where only one of the two words stands."""
    if len(_TOKEN.findall(seen)) > 1:
        yield from _PAIR.finditer(seen)
        yield from _BARE_PAIR.finditer(seen)


def _read_pair(seen: str, pair: re.Match[str]) -> tuple[Stance | None, bool, Mark | None]:
    """Read "agree or disagree": neither (a position), a refusal, or the question's own words."""
    start, end = sentence(seen, pair.start())
    before = seen[start : pair.start()]
    own = _SPEAKER.search(before) is not None or leads_in(before) or not before.strip(" \"'")
    words = pair.group().lower()
    if re.search(r"\bneither\b", before, re.IGNORECASE) and (
        own or leads_in(before[: before.lower().rfind("neither")])
    ):
        return Stance.N, False, Mark(start, end, Stance.N, Rank.PROSE)
    if _UNABLE.search(before) or re.search(r"\bunjustified|\bnot (?:fair|right|accurate)\b", before, re.IGNORECASE):
        return None, True, None
    if _NEGATED.search(before) and own and _SPEAKER.search(before):
        return Stance.N, False, Mark(start, end, Stance.N, Rank.PROSE, soft=True)
    if own and _SPEAKER.search(before) and (" and " in words and re.search(r"both|part", before + words)):
        return Stance.N, False, Mark(start, end, Stance.N, Rank.PROSE)
    return None, False, None


def _read_token(seen: str, token: re.Match[str], statement: str | None) -> Mark | Refusal | None:
    start, end = sentence(seen, token.start())
    said = _who_says(seen, start, token, opening=len(seen) - len(seen.lstrip(" \n\"'(")))
    if said is None or (seen[:end].rstrip(" \"')]").endswith("?") and _ASKING.match(seen[start:end])):
        return None
    after = seen[token.end() : end]
    if _FIELD.match(after) or said.quoted and re.search(r"\w", after):
        return None
    agrees = token["dis"] is None and token["differ"] is None
    negated = said.negated
    if negated and (more := _MORE.match(after)):
        negated, after = False, after[more.end() :]
    subject, length = _object(after, statement)
    if subject is About.OTHER and (agrees or negated):
        return None
    if subject is About.CLASS and agrees and said.unable:
        return Refusal.PLAIN
    if subject is About.CLASS and agrees and not negated:
        return None
    if said.unable and agrees and _NO_OPINION.search(seen[start:end]):
        return Refusal.PLAIN
    endorses = agrees ^ negated ^ (subject is About.OPPOSITE)
    rank = Rank.MENTION if subject is About.UNKNOWN else _rank(said, after, agrees)
    return Mark(said.start, end - len(after) + length, Stance.E if endorses else Stance.D, rank)


def _rank(said: _Said, after: str, agrees: bool) -> Rank:  # noqa: FBT001 -- read beside its caller
    if said.negated and said.unable and agrees:
        return Rank.MENTION
    return Rank.FINAL if _BARE_TAIL.match(after) or _SHORT_OBJECT.match(after) else Rank.PROSE


def _who_says(seen: str, start: int, token: re.Match[str], *, opening: int) -> _Said | None:
    """Find the speaker of the verb in its sentence; ``None`` where it is not the response itself, or no assertion."""
    before = seen[start : token.start()]
    form = (token["form"] or "").lower()
    if form == "ment" and not _IN_AGREEMENT.search(before):
        return None
    speakers = [speaker for speaker in _SPEAKER.finditer(before)]
    if not speakers:
        return _without_speaker(before, start, token)
    if form == "d":
        return None
    place = speakers[-1].start()
    gap = before[place:]
    if coordinated := _COORDINATED.search(gap):
        gap = coordinated.group()
        place = len(before) - len(gap)
    if len(gap) > 160 or _BLOCKED.search(gap) or _NOT_SAID.search(before[:place]):
        return None
    quoted = (
        before[:place].rstrip().endswith(('"', "'", "(")) and before.count('"') % 2 == 1 and place + start > opening
    )
    if before[:place].count('"') % 2 == 1 and not leads_in(before[:place]):
        return None
    if before[:place].endswith("'") and not leads_in(before[:place]):
        return None
    negated = _NEGATED.search(gap) is not None and not _LOVES_TO_AGREE.search(gap) and "not only" not in gap
    unable = negated and _UNABLE.search(gap) is not None
    return _Said(start + place, negated, unable, quoted)


def _without_speaker(before: str, start: int, token: re.Match[str]) -> _Said | None:
    """Read "Agree.", "Strongly disagree with this", "Answer: disagree"."""
    alone = _ALONE.search(before)
    lead = before[: alone.start()] if alone else before
    if (token["form"] or "").lower() == "ing" or not (leads_in(lead) or is_label(lead)):
        return None
    adverbs = before[len(lead) :]
    negated = _NEGATED.search(adverbs) is not None
    return _Said(start + len(lead), negated, unable=False, quoted=False)


def _object(after: str, statement: str | None) -> tuple[About, int]:
    """Tell what is agreed with, and how much of ``after`` says so."""
    if _BARE_TAIL.match(after):
        return About.STATEMENT, 0
    clause = _CLAUSE_END.search(after, 1)
    length = clause.start() if clause else len(after)
    if short := _SHORT_OBJECT.match(after):
        return About.STATEMENT, short.end()
    if preposition := _WITH.match(after):
        rest = after[preposition.end() :]
        if preposition.group().split()[-1].lower() == "to":
            return About.OTHER, 0
        if not rest.strip(" .\"'"):
            return About.STATEMENT, length
        subject = about_object(rest, statement)
        you = re.match(r"you (?:that|in|on|about)\s+", rest, re.IGNORECASE)
        if you:
            subject = about_clause(rest[you.end() :], statement)
    else:
        rest = re.sub(r"\A\s*[\"']*(?:that\s+)?", "", after)
        subject = About.CLASS if re.match(r"\s*(?:or|nor)\s", after) else about_clause(rest, statement)
    return subject, length
