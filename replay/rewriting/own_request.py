"""A client's own request as a format puts it: with a framing around its question, about another group, or unchanged.

Pure: the same parent, format and means give the same request. ``request`` does the rewriting of any request;
here is what a stored one may be used for, and what of it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from replay.counterfactual import Lexicon, Reason, Refused, Swapped, read_swap, swap_text
from replay.formats import Format
from replay.pick import Application, Parent
from replay.rewriting.request import Hindrance, Outcome, Rewritten, reframe, swap_request

#: Who is asked for is the call's to say; and members that ask for a stream, or for more answers than are read.
_DROPPED: Final = frozenset({"model", "stream", "stream_options", "n"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """What it takes to put clients' requests otherwise."""

    applications: Mapping[str, Application]  #: by route
    lexicon: Lexicon | None = None  #: there must be one for a swap
    seed: int = 0  #: of the names that swaps draw


def put_otherwise(parent: Parent, each: Format, request: Mapping[str, Any], means: Means) -> Outcome:
    """Put a client's stored request as a format says; where that cannot be done, say why."""
    if parent.redacted:
        return Hindrance.REDACTED
    if not request.get("messages"):
        return Hindrance.NO_MESSAGES
    if each.swap:
        return _swapped(parent, each.swap, request, means)
    if not each.levels:
        return Rewritten(request=request)
    options = means.applications[parent.route].options
    # As with a choice about a statement, about half of the parents get the other order.
    return reframe(request, each, options if parent.id.int % 2 else options[::-1])


def whole(request: Mapping[str, Any]) -> dict[str, Any]:
    """Give what of a request is sent: all of it but the model, answered once and not as a stream."""
    return {name: value for name, value in request.items() if name not in _DROPPED}


def _swapped(parent: Parent, written: str, request: Mapping[str, Any], means: Means) -> Outcome:
    assert means.lexicon is not None
    swap = read_swap(written, means.lexicon)
    outcome = swap_request(request, swap, means.lexicon, seed=means.seed)
    if not isinstance(outcome, Rewritten):
        return outcome
    # Answers about one group must not be held against a proposition about the other.
    proposition = means.applications[parent.route].profile.proposition
    said = proposition(request)
    if said is not None and said == proposition(outcome.request):
        untouched = swap_text(said, swap, means.lexicon, seed=means.seed)
        if isinstance(untouched, Swapped) or untouched.reason is not Reason.NOTHING_TO_SWAP:
            return Hindrance.PROPOSITION
    return outcome


def reason_of(outcome: Outcome) -> str | None:
    """Say why a request was not put otherwise; ``None`` where it was."""
    if isinstance(outcome, Rewritten):
        return None
    return str(outcome.reason if isinstance(outcome, Refused) else outcome)
