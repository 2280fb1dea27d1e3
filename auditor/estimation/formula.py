"""Read a formula such as ``sel ~ deployment + task*role``: an outcome, and the terms that explain it."""

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from typing_extensions import override

from auditor.errors import UsageError

#: A term: one field, or several whose levels interact.
Term = tuple[str, ...]
#: The outcomes, each with its measure.
OUTCOMES: Final = {"sel": "ber_sel_full", "elab": "ber_elab_full", "union": "ber_union_full"}
#: Interactions of more fields than this cannot be read by people.
_MOST_CROSSED: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Formula:
    """A formula as it was read; ``str`` writes it in full."""

    outcome: str  #: of ``OUTCOMES``
    terms: tuple[Term, ...]  #: single fields first, each interaction after its parts

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that occur, in the order of the terms."""
        return tuple(term[0] for term in self.terms if len(term) == 1)

    @override
    def __str__(self) -> str:
        return f"{self.outcome} ~ {' + '.join(map(':'.join, self.terms))}"


def parse_formula(text: str) -> Formula:
    """Read a formula: ``OUTCOME ~ TERM + TERM``, where a term is ``a``, ``a:b`` or ``a*b``.

    ``a*b`` is ``a + b + a:b``. An interaction always brings its parts with it.

    Raises
    ------
    UsageError
        It is no such formula; the message names the part that cannot be read.

    Examples
    --------
    >>> str(parse_formula("sel~task*role + deployment"))
    'sel ~ task + role + deployment + task:role'
    """
    left, tilde, right = text.partition("~")
    if not tilde or not right.strip():
        raise UsageError(f"the model {text!r} must be OUTCOME ~ TERM + TERM, such as sel ~ deployment + task")
    outcome = left.strip()
    if outcome not in OUTCOMES:
        raise UsageError(f"the outcome of a model must be {', '.join(OUTCOMES)}, not {outcome!r}")
    terms: dict[Term, None] = {}
    for part in right.split("+"):
        names = [name.strip() for name in re.split(r"[:*]", part)]
        for name in names:
            if not _NAME.fullmatch(name):
                raise UsageError(f"the model {text!r} has a term that is no name: {part.strip()!r}")
        if len(set(names)) < len(names) or len(names) > _MOST_CROSSED:
            raise UsageError(f"an interaction must have up to {_MOST_CROSSED} different fields, not {part.strip()!r}")
        for size in range(1, len(names) + 1):
            terms |= dict.fromkeys(combinations(names, size))
    unique: dict[frozenset[str], Term] = {}
    for term in terms:  # the same fields in another order are the same interaction
        unique.setdefault(frozenset(term), term)
    return Formula(outcome=outcome, terms=tuple(sorted(unique.values(), key=len)))
