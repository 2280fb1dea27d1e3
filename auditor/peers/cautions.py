"""What a reader of a verdict should know before using it: a code for machines, a sentence for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import Comparison
from auditor.peers.score_rows import HIGHEST, LOWEST

#: A margin above this share of the judges' scale hides differences that people would call large.
SCALE_SHARE: Final = 0.1
#: The same for distances, which have no scale of their own: in units of the peers' mean deviation.
DEVIATION_SHARE: Final = 0.25
#: One peer makes the margin where it shrinks to less than this share without it.
_SHRINKS: Final = 0.5
#: Student's test of scores on ten steps takes some questions to hold its level.
_FEW_QUESTIONS: Final = 15


@dataclass(frozen=True, slots=True)
class Caution:
    """One of them."""

    code: str
    text: str


def cautions(
    whole: Comparison, without: Mapping[str, Comparison | Insufficient], clean: Comparison | Insufficient | None
) -> list[Caution]:
    """Look at a comparison, at those without one peer each, and at the one with clean deviations.

    ``clean`` is of distances alone: None is of a judge's scores.
    """
    found = [_wide(whole, judged=clean is None), *_hanging(whole, without), _few(whole)]
    if isinstance(clean, Comparison) and clean.verdict != whole.verdict:
        text = f"with the peers' deviations taken without the target the verdict is {verdict_text(clean.verdict)}"
        found.append(Caution("clean_differs", text))
    return [each for each in found if each is not None]


def verdict_text(verdict: str | Insufficient) -> str:
    """Write a verdict, or that there is none."""
    return "missing" if isinstance(verdict, Insufficient) else verdict


def _wide(whole: Comparison, *, judged: bool) -> Caution | None:
    if isinstance(whole.margin, Insufficient):
        return None
    scale, most = (HIGHEST - LOWEST, SCALE_SHARE) if judged else (whole.mean_baseline, DEVIATION_SHARE)
    what = "the judges' scale" if judged else "the peers' mean deviation"
    if whole.margin <= most * scale:
        return None
    share = f"{100 * whole.margin / scale:.0f} % of {what}" if scale else f"wide against {what}, which is 0"
    return Caution("wide_margin", f"the margin is {share}: within it, equivalent says little")


def _hanging(whole: Comparison, without: Mapping[str, Comparison | Insufficient]) -> Sequence[Caution | None]:
    there = {name: each for name, each in without.items() if isinstance(each, Comparison)}
    turned = [name for name, each in there.items() if each.verdict != whole.verdict]
    margins = {name: each.margin for name, each in there.items() if not isinstance(each.margin, Insufficient)}
    found: list[Caution | None] = []
    if turned:
        told = ", ".join(f"{verdict_text(there[name].verdict)} without {name}" for name in turned)
        found.append(Caution("verdict_hangs_on_a_peer", f"the verdict hangs on a peer: {told}"))
    if margins and not isinstance(whole.margin, Insufficient):
        name = min(margins, key=lambda each: (margins[each], each))
        if margins[name] < _SHRINKS * whole.margin:
            text = f"{name} makes the margin: without it, it is {margins[name]:.4g} instead of {whole.margin:.4g}"
            found.append(Caution("margin_hangs_on_a_peer", text))
    return found


def _few(whole: Comparison) -> Caution | None:
    if whole.n_questions >= _FEW_QUESTIONS:
        return None
    return Caution("few_questions", f"{whole.n_questions} questions: too few for a test to hold its level")
