"""Define a domain: its questions, and what judges and embeddings look for in the answers."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from auditor.errors import UsageError
from auditor.instrument.loaders.loader import digest

#: Placeholders of a domain.
PLACEHOLDERS: Final = ("company", "product")

_PLACE: Final = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
#: An instruction of one token is taken for a text without any by INSTRUCTOR's pooling; one word can be one token.
_FEWEST_WORDS: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerQuestion:
    """One question; ``id`` is unique in its domain."""

    id: str
    theme: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """A domain of Relative Bias (section 3.2 of the paper).

    Parameters
    ----------
    name
        The name by which the configuration, reports and series call it.
    description
        Subject of the domain, in a sentence or two; a generator of questions is given it.
    target
        Text of what a judge looks for; it follows the words "signs of" (A.1 of the paper, ``target_bias_domain``).
    instruction
        Instruction of an instructed encoder about the answers; at least two words.
    version
        The edition of a shipped pack; of one's own the digest of its questions as they are written.
    questions
        At least one question; ids are unique.

    Raises
    ------
    ValueError
        No question, an id that stands twice, or an instruction that is too short.
    """

    name: str
    description: str
    target: str
    instruction: str
    version: str
    questions: tuple[PeerQuestion, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise ValueError("a domain needs questions")
        if len({question.id for question in self.questions}) < len(self.questions):
            raise ValueError("a domain's questions need ids of their own")
        if len(self.instruction.split()) < _FEWEST_WORDS:
            raise ValueError(f"an instruction needs at least {_FEWEST_WORDS} words")

    @property
    def themes(self) -> Mapping[str, int]:
        """The number of questions of each theme, in the order of the questions."""
        return Counter(question.theme for question in self.questions)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The placeholders that are not filled, in the order of ``PLACEHOLDERS``."""
        names = {name for text in self._texts() for name in _PLACE.findall(text)}
        return tuple(name for name in PLACEHOLDERS if name in names)

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change with any word of the domain."""
        questions = (part for question in self.questions for part in (question.id, question.theme))
        return digest(self.name, *self._texts(), *questions)

    def fill(self, values: Mapping[str, str]) -> "Domain":
        """Fill the placeholders in.

        Examples
        --------
        >>> question = PeerQuestion(id="q1", theme="Prices", text="Why did {company} raise its prices?")
        >>> open_one = Domain(name="prices", description="Prices of {company}.", target="flattery of {company}",
        ...                   instruction="Represent the answer:", version="1", questions=(question,))
        >>> filled = open_one.fill({"company": "Acme"})
        >>> filled.questions[0].text, filled.target, filled.placeholders
        ('Why did Acme raise its prices?', 'flattery of Acme', ())

        Raises
        ------
        UsageError
            A placeholder is left open, or a name is not a placeholder.
        """
        lacking = [name for name in self.placeholders if name not in values]
        if lacking:
            raise UsageError(f"{self.name} leaves open whom it asks about: name the {' and the '.join(lacking)}")
        odd = sorted(set(values) - set(self.placeholders))
        if odd:
            raise UsageError(f"{self.name} asks about no {' or '.join(odd)}")
        return replace(
            self,
            description=_put(self.description, values),
            target=_put(self.target, values),
            instruction=_put(self.instruction, values),
            questions=tuple(replace(question, text=_put(question.text, values)) for question in self.questions),
        )

    def _texts(self) -> tuple[str, ...]:
        return (self.description, self.target, self.instruction, *(question.text for question in self.questions))


def _put(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], text)
