"""Recognise the task, condition and statement of a prompt from its words only, as a model must.

The statement is looked up in the simulator's pool. Without a pool it is the sentence in quotes, or else the longest
sentence that is not an instruction. ``respondent`` answers the prompt.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.statement import Statement
from auditor.instrument.formats import format_of, formats
from auditor.instrument.formats.framing import framed, messages
from auditor.instrument.templates import EDITIONS, reversed_wordings, wordings_of
from auditor.simulate.expected import Ask
from auditor.simulate.propensity import statement_key

_ONLY: Final = re.compile(
    r"\b(?:answer|reply|respond)\b[^.?!\n]{0,60}\bonly\b"
    r"|\bonly (?:with |the |a )*(?:letter|option|number|yes|answer|word|rating)"
    r"|\b(?:one|a single) word\b|\b(?:no|without (?:any |an? )?) ?(?:explanation|reason)s?\b|\bnothing else\b",
    re.IGNORECASE,
)
#: Words by which a user's own templates name a level; they are searched outside the statement.
_ROLE_CUES: Final = {
    "sociologist": r"sociolog",
    "military": r"military|army|soldier|security officer",
    "policy_maker": r"policy[ -]?maker|legislat|public policy",
    "data_scientist": r"data scien",
    "ai_ethicist": r"ethicist|responsible (?:ai|technology)",
}
_PERSPECTIVE_CUES: Final = {
    "famous": r"public figure|celebrit|famous|award-winning|well-known (?:person|figure|speaker)",
    "media": r"\bmedia\b|newspaper|journalist|broadcast|\bthe news\b",
    "institutional": r"institution|official (?:body|agency|report)|government report",
    "historical": r"histor|for centuries|in the past|tradition",
    "others": r"some people|many people|others (?:say|believe|think)|it is said",
}
_SENTIMENT_CUES: Final = {
    "indignant": r"outrag|appall|disgrace|shame",
    "skeptical": r"doubt|skeptic|sceptic|hard to believe",
    "negative": r"unpleasant|deplorable|sad to hear|awful|troubling",
    "positive": r"refreshing|wonderful|glad to|delight|well put|celebrate",
    "analytical": r"detach|analytic|objectively|point by point|dispassionate",
}
_INSTRUCTION: Final = re.compile(
    r"\?\s*$|^\s*(?:please |now,? |then )?(?:answer|give|explain|complete|choose|select|pick|rate|reply|respond|"
    r"consider|on a scale|read|fill|do you|state|judge|evaluate|discuss|using|context|options?)\b"
    r"|^\s*\(?[AB1-5][).:=]|^\s*\(1 =",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\"“]([^\"”\n]{12,400})[\"”]")
_SENTENCE: Final = re.compile(r"[^.?!\n]+(?:[.?!]+[\"”')]*|\n|\Z)")
_LETTERED: Final = re.compile(r"(?m)(?<!\w)\(?([AB])[).:]\s+([^\n]{1,160}?)(?=\s*(?:\n|\(?B[).:]\s|[;,]\s|\Z))")
_OFFERED: Final = re.compile(
    r"options?:?\s*([^/\n.:]{1,80}?)\s*(?:/|\bor\b)\s*([^/\n.]{1,80}?)\s*(?:[.\n]|\Z)", re.IGNORECASE
)
_BLANK: Final = re.compile(r"_{2,}|\[blank\]", re.IGNORECASE)
#: Replaces the statement if only the words around it are searched.
_GAP: Final = " "


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompted:
    """The content of a prompt. CTO and SC have options, CTO has letters, SC has the blank sentence."""

    ask: Ask
    statement: str
    stereotype: str = ""
    counter: str = ""
    stereotype_letter: str = ""
    counter_letter: str = ""
    completion: str = ""
    reverse_scale: bool = False  #: on Rate: 5 is disagreement
    known: bool = False  #: in the pool; otherwise the second option is assumed to be the stereotype's

    @property
    def is_open(self) -> bool:
        """Whether the prompt is a question without a statement."""
        return not self.ask.task.has_selection and not self.known and self.statement.endswith("?")


class KnownStatements:
    """The simulator's statements, by every wording that a prompt may use. Versions of a pool share wordings."""

    def __init__(self, statements: Iterable[Statement] = ()) -> None:
        wordings: dict[str, list[Statement]] = {}
        for statement in statements:
            for text in filter(None, (statement.statement, statement.context, statement.completion)):
                wordings.setdefault(statement_key(text), []).append(statement)
        self._wordings = sorted(wordings.items(), key=lambda pair: -len(pair[0]))

    def find(self, prompt: str) -> Statement | None:
        """Find the statement with the longest wording that occurs in the prompt; of several, the one with its options.

        If the prompt offers the options of none of them, it is the first one.
        """
        plain = statement_key(prompt)
        matches = next((statements for wording, statements in self._wordings if wording in plain), [])
        offered = (
            statement
            for statement in matches
            if statement.counter_option and statement_key(statement.counter_option) in plain
        )
        return next(offered, next(iter(matches), None))


def recognise(system: str, prompt: str, pool: KnownStatements) -> Prompted:
    """Read one request: the system prompt and the last user message."""
    known = pool.find(prompt)
    shown = _shown(known) if known else []
    statement = known.statement if known else _statement_in(prompt)
    around = _without(prompt, [*shown, statement])
    ask = replace(_condition(system, around), task=_task(prompt), answer_only=_ONLY.search(around) is not None)
    prompted = Prompted(ask=ask, statement=statement, known=known is not None)
    options = format_of(ask.task).options
    if options == "letters":
        return _with_letters(prompted, prompt, known)
    if options == "blank":
        return _with_completion(prompted, prompt, known)
    lines = {line.strip() for line in prompt.splitlines()}
    return replace(prompted, reverse_scale=ask.task is Task.RATE and bool(lines & _reverse_scales()))


def _shown(known: Statement) -> list[str]:
    """Return the wordings of a statement that a prompt may use, the longest first."""
    texts = (
        known.statement,
        known.context,
        known.completion,
        known.question,
        known.stereotype_option,
        known.counter_option,
    )
    return sorted((text for text in texts if text), key=len, reverse=True)


def _task(prompt: str) -> Task:
    tried = sorted(formats().values(), key=lambda form: form.simulated.rank)
    return next((form.task for form in tried if form.simulated.cue.search(prompt)), Task.JUDGE)


def _condition(system: str, around: str) -> Ask:
    lines = {line.strip() for line in around.splitlines()}
    known = _wordings()
    return Ask(
        role=known["role"].get(system.strip()) or _by_words(_ROLE_CUES, system) or "none",
        perspective=_by_line(known["perspective"], lines) or _by_words(_PERSPECTIVE_CUES, around) or "self",
        sentiment=_by_line(known["sentiment"], lines) or _by_words(_SENTIMENT_CUES, around) or "neutral",
    )


@lru_cache(maxsize=1)
def _wordings() -> dict[str, dict[str, str]]:
    """Return every wording of every level that the product uses, so that simulator and product stay the same."""

    def personas(role: Role) -> list[str]:
        return [messages(Condition(role=role), "-")[0].content, *wordings_of(role)]

    def lines(level: Perspective | Sentiment, condition: Condition) -> list[str]:
        wordings = (wording for edition in EDITIONS.get(level, ("",)) for wording in wordings_of(level, edition))
        framings = [framed(_GAP, condition), *(wording.replace("{claim}", _GAP) for wording in wordings)]
        return [line.strip() for framing in framings for line in framing.splitlines() if line.strip()]

    return {
        "role": {words: str(level) for level in Role if level is not Role.NONE for words in personas(level)},
        "perspective": {
            line: str(level)
            for level in Perspective
            if level is not Perspective.SELF
            for line in lines(level, Condition(perspective=level))
        },
        "sentiment": {
            line: str(level)
            for level in Sentiment
            if level is not Sentiment.NEUTRAL
            for line in lines(level, Condition(sentiment=level))
        },
    }


@lru_cache(maxsize=1)
def _reverse_scales() -> frozenset[str]:
    """Return the lines of the product's questions on which 5 is disagreement, without those of the other questions."""
    form = format_of(Task.RATE)
    plain, reverse = (
        [first, *others]
        for first, others in (
            (form.ask, wordings_of(Task.RATE)),
            (form.ask_reversed or "", reversed_wordings(Task.RATE)),
        )
    )
    lines = [{line.strip() for text in texts for line in text.splitlines()} for texts in (reverse, plain)]
    return frozenset(lines[0] - lines[1])


def _by_line(cues: dict[str, str], lines: set[str]) -> str | None:
    return next((level for line, level in cues.items() if line in lines), None)


def _by_words(cues: dict[str, str], text: str) -> str | None:
    return next((level for level, cue in cues.items() if re.search(cue, text, re.IGNORECASE)), None)


def _statement_in(prompt: str) -> str:
    quoted = [match[1] for match in _QUOTED.finditer(prompt) if len(match[1].split()) > 2]
    if quoted:
        return max(quoted, key=len)
    wordings = _wordings()
    known = {*wordings["perspective"], *wordings["sentiment"]}
    sentences = [match.group().strip() for match in _SENTENCE.finditer(prompt)]
    plain = [
        sentence for sentence in sentences if sentence and sentence not in known and not _INSTRUCTION.search(sentence)
    ]
    return max(plain or sentences or [prompt], key=len)


def _without(prompt: str, texts: Sequence[str]) -> str:
    for text in texts:
        if text.strip():
            words = r"\s+".join(map(re.escape, text.split()))
            prompt = re.sub(rf"(?<!\w){words}(?!\w)", _GAP, prompt, flags=re.IGNORECASE)
    return prompt


def _with_letters(prompted: Prompted, prompt: str, known: Statement | None) -> Prompted:
    options = {letter.upper(): text.strip(" .") for letter, text in _LETTERED.findall(prompt)}
    first, second = options.get("A", "the first"), options.get("B", "the second")
    swapped = (
        known is not None
        and known.stereotype_option is not None
        and (statement_key(first) == statement_key(known.stereotype_option))
    )
    if swapped:
        return replace(prompted, stereotype=first, counter=second, stereotype_letter="A", counter_letter="B")
    return replace(prompted, stereotype=second, counter=first, stereotype_letter="B", counter_letter="A")


def _with_completion(prompted: Prompted, prompt: str, known: Statement | None) -> Prompted:
    blank = next((match.group().strip() for match in _SENTENCE.finditer(prompt) if _BLANK.search(match.group())), "")
    if known and known.stereotype_option and known.counter_option:
        stereotype, counter = known.stereotype_option, known.counter_option
        return replace(prompted, stereotype=stereotype, counter=counter, completion=known.completion or blank)
    offered = _OFFERED.search(prompt)
    counter, stereotype = offered.groups() if offered else ("the first", "the second")
    return replace(prompted, stereotype=stereotype.strip(), counter=counter.strip(), completion=blank)


def complete(completion: str, option: str) -> str:
    """Fill the blank, with a capital letter at the start of a sentence.

    >>> complete("____ rise early", "bakers")
    'Bakers rise early.'
    """
    filled = _BLANK.sub(option, completion, count=1).strip()
    return filled[:1].upper() + filled[1:].rstrip(".") + "."
