"""What a reader of answers must know: the question as it was asked (``Question``) and the ``Answer``.

Formats turn a statement under a condition into ``Message``s, and an ``Answer`` to a ``Question`` into a selection.
"""

from dataclasses import dataclass

from auditor.domain.coding import Stance


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a chat request."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One member of a closed answer set: how it is marked ("B", "3)"), what it says, and what choosing it means."""

    marker: str
    text: str
    stance: Stance


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What was asked, as far as it is known. Everything may be absent: then less can be read."""

    statement: str | None = None
    statement_id: str | None = None
    stereotype_option: str | None = None
    counter_option: str | None = None
    option_a: str | None = None
    option_b: str | None = None
    options: tuple[Option, ...] = ()
    prompt: str | None = None
    reverse_scale: bool = False  #: on Rate: 5 is disagreement

    @property
    def is_open(self) -> bool:
        """Whether nothing tells what was asked about, neither a statement nor what the options mean.

        Then "yes" endorses nothing that is known: there is no selection, and only the open rubric can read the text.
        """
        mapped = self.options or (self.stereotype_option and self.counter_option)
        return not (self.statement or self.statement_id or mapped)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came back. ``text is None`` means that there is no response."""

    text: str | None
    finish_reason: str | None = None
    error: str | None = None
