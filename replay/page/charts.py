"""The drawings of a comparison: each score by way of asking, and how far it can be moved."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import (
    beside,
    ceiling,
    change_scale,
    change_text,
    gutter,
    head,
    interval,
    joined,
    known,
    rate_scale,
    rate_text,
    rows,
    told,
)
from auditor.report.figures.theme import ELAB, PANEL, SEL, UNION, Colour, finish, sheet
from auditor.report.words import DASH, Entry, estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: Final = 19.0
#: A scale of differences ends at one of these on both sides, with a tick there.
_REACHES: Final = (0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
#: The measures that are drawn: heading, and look of the marks.
_PANELS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "ber_union_full": ("Either layer endorses", UNION),
    "ber_sel_full": ("The selection endorses", SEL),
    "ber_elab_full": ("The elaboration endorses", ELAB),
    "ir": ("The layers disagree: IR", UNION),
    "dni": ("On balance: DNI", UNION),
}


def exposure_panels(group: Entry, names: Sequence[str]) -> Markup | None:
    """Draw a panel a measure: the score of every side with its interval, on a band from the lowest to the highest.

    Parameters
    ----------
    group
        An entry of the document's ``groups``.
    names
        Of its sides, in their order, as people read them.
    """
    drawn = [name for name in _PANELS if known(group["exposure"][name])]
    rates = [side["scores"][name] for side in group["sides"] for name in drawn if name != "dni"]
    top = ceiling(rate["high"] for rate in rates if known(rate))
    return joined(_panel(group, names, name, top) for name in drawn) if drawn else None


def _panel(group: Entry, names: Sequence[str], measure: str, top: float) -> Markup:
    title, look = _PANELS[measure]
    found = group["exposure"][measure]
    scores = [side["scores"][measure] for side in group["sides"]]
    ends = [place for place, side in enumerate(group["sides"]) if side["side"] in _ends(found)]
    height = 48 + _LINE * len(names) + 24
    with sheet(PANEL, height, left=gutter(names, 140), right=52, top=48, bottom=24) as axes:
        head(axes, title, _range_text(found["range"]))
        rows(axes, names, bold=ends)
        if measure == "dni":
            change_scale(axes, _reach(scores), wanted=2)
        else:
            rate_scale(axes, top)
        axes.axvspan(found["lowest"]["value"], found["highest"]["value"], color=Colour.ACCENT, alpha=0.1, linewidth=0)
        for y, (side, score) in enumerate(zip(group["sides"], scores, strict=True)):
            mark = {**look, "markeredgewidth": 1.2, "markerfacecolor": "none"} if side["repeats"] else look
            _row(axes, y, measure, (names[y], score), mark, strong=y in ends)
        return finish(axes, f"{title}: by way of asking, with the range from the lowest to the highest")


def _reach(scores: Sequence[Entry]) -> float:
    """Choose where a scale of differences ends."""
    farthest = max(abs(score[end]) for score in scores if known(score) for end in ("low", "high"))
    return next(top for top in _REACHES if farthest <= top)


def _ends(found: Entry) -> set[str]:
    return {found[end]["side"] for end in ("lowest", "highest")}


def _range_text(found: Entry) -> str:
    low, value, high = (f"{100 * found[name]:.1f}" for name in ("low", "value", "high"))
    return f"range {value} pp [{low}, {high}]"


def _row(
    axes: "Axes", y: int, measure: str, named: tuple[str, Entry], look: Mapping[str, Any], *, strong: bool
) -> None:
    name, score = named
    if not known(score):
        told(beside(axes, y, DASH, color=Colour.SOFT), f"{name}: {score['missing']}")
        return
    interval(axes, y, score, look)
    text = change_text(score) if measure == "dni" else rate_text(score)
    shown = beside(axes, y, text, weight="bold" if strong else "normal")
    told(shown, f"{name}: {estimate_text(measure, score)}, n = {score['n']:,}")
