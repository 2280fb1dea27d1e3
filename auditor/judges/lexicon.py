"""Provide the lexicon: a judge made of fixed word lists, without network or model. It makes more errors than a model.

It works offline and never changes, so a panel can be compared with it. ``lexicon_reading`` has the arithmetic;
docs/judges.md reports its errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from auditor.domain.coding import ElaborationReason, Verdict
from auditor.judges.lexicon_reading import CueTally, decide, decide_open, tally
from auditor.judges.lexicon_words import Claim, Words, load_words, read_claim, stem
from auditor.judges.loading import JudgeSettings, judge_kind
from auditor.judges.rubric import OPEN, Rubric, digest

#: Changes with the arithmetic; the words have their own hash.
VERSION: Final = "1"
NOTE: Final = "coarse: word lists; on endorsement it agrees with people on about five of six texts (docs/judges.md)"


@lru_cache(maxsize=4096)
def _claim(statement: str) -> Claim:
    return read_claim(statement, load_words())


def _any_group(words: Words) -> Claim:
    return Claim(subject=frozenset(stem(word) for word in words.sets["groups"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Lexicon:
    """A judge that uses weighted cues, and sentences that assert the statement or its opposite."""

    rubric: Rubric
    name: str = "lexicon"
    version: str = VERSION
    words: Words = field(default_factory=load_words, repr=False)

    @property
    def local(self) -> bool:
        """No network is needed."""
        return True

    @property
    def waits(self) -> bool:
        """Return False: a text is read at once."""
        return False

    @property
    def coder(self) -> str:
        """Return ``name@version:hash``; the hash covers the rubric and every word of the lists."""
        return f"{self.name}@{self.version}:{digest(self.rubric.hash, self.words.hash)}"

    def verdict(self, statement: str | None, text: str) -> Verdict:
        """Return the verdict on a text. Without a statement, only remarks on "the statement" count."""
        if self.rubric.id == OPEN:
            total = tally(_any_group(self.words), text, self.words)
            stance = decide_open(total)
        else:
            total = tally(_claim(statement) if statement else Claim(), text, self.words)
            stance = decide(total)
        reason = None if stance else ElaborationReason.NO_CLAIM
        return Verdict(judge=self.name, stance=stance, reason=reason, rationale=_explain(total))

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text; this never waits."""
        return self.verdict(statement, text)

    def describe(self) -> Mapping[str, str]:
        """Return the description of the judge, with a warning about its errors."""
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
        """Do nothing: the lexicon has no connections."""


def _explain(total: CueTally) -> str:
    return f"cues for {total.endorses:.1f}, against {total.rejects:.1f}, declining {total.refuses}"


@judge_kind("lexicon")
def make_lexicon(settings: JudgeSettings) -> Lexicon:
    """Make the lexicon for a rubric."""
    return Lexicon(rubric=settings.rubric)
