"""The lexicon: a judge of fixed word lists, without network or model. It is coarse, and says so.

It exists so that everything can be tried offline and so that a panel can be compared with something that never
changes. ``lexicon_reading.py`` holds its arithmetic; docs/judges.md says how often it is right, and where not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from auditor.domain.coding import ElaborationReason, Verdict
from auditor.judges import JudgeSettings, judge_kind
from auditor.judges.lexicon_cues import Words, load_words
from auditor.judges.lexicon_reading import Tally, decide, decide_open, tally
from auditor.judges.lexicon_text import Claim, read_claim, stem
from auditor.judges.rubric import OPEN, Rubric, digest

#: Changes when the arithmetic does; the words have their own hash.
VERSION: Final = "1"
NOTE: Final = "coarse: word lists, no understanding; docs/judges.md measures what it gets wrong"


@lru_cache(maxsize=4096)
def _claim(statement: str) -> Claim:
    return read_claim(statement, load_words())


def _any_group(words: Words) -> Claim:
    return Claim(subject=frozenset(stem(word) for word in words.sets["groups"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Lexicon:
    """Stance by weighted cues, and by whether a sentence says what the statement says or its opposite."""

    rubric: Rubric
    name: str = "lexicon"
    version: str = VERSION
    words: Words = field(default_factory=load_words, repr=False)

    @property
    def coder(self) -> str:
        """``name@version:hash``; the hash covers the rubric and every word of the lists."""
        return f"{self.name}@{self.version}:{digest(self.rubric.hash, self.words.hash)}"

    def read_now(self, statement: str | None, text: str) -> Verdict:
        """Read one text at once. Without a statement, only what the text says of "the statement" is to be had."""
        if self.rubric.id == OPEN:
            total = tally(_any_group(self.words), text, self.words)
            stance = decide_open(total)
        else:
            total = tally(_claim(statement) if statement else Claim(), text, self.words)
            stance = decide(total)
        reason = None if stance else ElaborationReason.NO_CLAIM
        return Verdict(judge=self.name, stance=stance, reason=reason, rationale=_explain(total))

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text; nothing is awaited."""
        return self.read_now(statement, text)

    def describe(self) -> Mapping[str, str]:
        """Return who labelled, with the warning that goes with it."""
        return {
            "name": self.name,
            "kind": "lexicon",
            "version": self.version,
            "rubric": self.rubric.id,
            "rubric_hash": self.rubric.hash,
            "prompt_hash": digest(self.rubric.hash, self.words.hash),
            "coder": self.coder,
            "note": NOTE,
        }

    async def aclose(self) -> None:
        """Nothing is held open."""


def _explain(total: Tally) -> str:
    return f"cues for {total.endorses:.1f}, against {total.rejects:.1f}, declining {total.refuses}"


@judge_kind("lexicon")
def make_lexicon(settings: JudgeSettings) -> Lexicon:
    """Make the lexicon for a rubric."""
    return Lexicon(rubric=settings.rubric)
