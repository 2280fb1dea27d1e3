"""The report's figures: whole drawings of the numbers given, in the page's colours, whatever the names are."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup
from msgspec import structs
from support.documents.figure_entries import (
    FACTORS_WITH_LEVELS,
    LAYERS,
    MISSING,
    condition_entries,
    crossed_entries,
    estimate,
    factor_entries,
    factor_entry,
    group_entries,
    interaction_entries,
    judge_entries,
    level_entries,
    mitigation_entries,
    range_entries,
    rank_entries,
    share_entries,
    slice_values,
    tradeoff_entries,
)
from support.paths import ROOT

from auditor.documents.estimates import EstimateEntry
from auditor.report import (
    basis,
    crossed,
    decomposition,
    judges,
    levels,
    mitigation,
    prompts,
    rankings,
    slices,
    variation,
)
from auditor.report.canvas import Colour, Look, Plot, line_look
from auditor.report.svg import shorten, text_width
from auditor.report.wording import DASH, condition_text

PLAIN = ["alpha", "beta", "gamma"]
HOSTILE = ["<script>alert('m')</script>", '$x^2$ & "y"', "line\nbreak\x00\x1b[31m", "名前の長いモデル"]
LONG = "azure-production-westeurope/a-very-long-deployment-name-that-goes-on"
TOO_LONG = [f"{LONG}-{LONG}-{number}" for number in range(2)]

DRAWN: dict[str, Callable[[list[str]], Markup | None]] = {
    "factor": lambda names: levels.factor_panels(condition_entries(names), level_entries()),
    "family": lambda names: levels.family_panels(condition_entries(names), level_entries(), factor_entries()),
    "naive": lambda names: decomposition.naive_bars(group_entries(names)),
    "judges": lambda names: judges.judge_dots(judge_entries(names)),
    "swing": lambda names: variation.swing_bars(range_entries(names), condition_entries(names)),
    "map": lambda names: decomposition.reliability_map(group_entries(names)),
    "interaction": lambda names: crossed.interaction_panel(interaction_entries(len(names))),
    "cells": lambda names: crossed.cell_map(*crossed_entries(names)),
    "pareto": lambda _: mitigation.pareto_panels(tradeoff_entries()),
    "slices": lambda names: slices.slice_map("category", slice_values(names)),
    "ranks": lambda names: rankings.rank_bars(rank_entries(names)),
    "coverage": lambda names: basis.coverage_bars(group_entries(names)),
    "shares": lambda names: variation.share_bars(share_entries(names)),
    "mitigation": lambda _: mitigation.mitigation_panels(mitigation_entries()),
    "conditions": lambda names: prompts.condition_panels(condition_entries(names)),
}
#: Figures that name the deployments.
NAMING = sorted(DRAWN.keys() - {"interaction", "pareto", "mitigation", "judges"})
everywhere = pytest.mark.parametrize("name", sorted(DRAWN))


def drawn(name: str, deployments: Sequence[str]) -> Markup:
    return kept(name, tuple(deployments))


@cache
def kept(name: str, deployments: tuple[str, ...]) -> Markup:
    return fresh(name, deployments)


def fresh(name: str, deployments: Sequence[str]) -> Markup:
    found = DRAWN[name](list(deployments))
    assert found is not None
    return found


def panels_of(markup: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", markup, flags=re.DOTALL)]


def texts(markup: str) -> list[str]:
    return [text.text or "" for panel in panels_of(markup) for text in panel.iter("text")]


def titles(markup: str) -> list[str]:
    return [title.text or "" for panel in panels_of(markup) for title in panel.iter("title")]


@everywhere
@pytest.mark.parametrize("names", [PLAIN, HOSTILE], ids=["plain", "hostile"])
def test_drawings_are_whole_and_say_what_they_show(name: str, names: list[str]) -> None:
    markup = drawn(name, names)
    for panel in panels_of(markup):
        assert panel.get("role") == "img"
        assert panel[0].tag == "title"
        assert panel[0].text
        assert {element.tag for element in panel.iter()} <= {"svg", "title", "g", "path", "text"}
    assert "<script" not in markup
    assert not re.search(r"\bid=|\bnan\b|\binf\b|url\(|href", markup, flags=re.IGNORECASE)


@everywhere
def test_every_colour_is_one_of_the_page_s(name: str) -> None:
    css = (ROOT / "auditor/report/page/report.css").read_text()
    markup = drawn(name, PLAIN)
    used = set(re.findall(r"(?:fill|stroke):([^;\"]+)", markup))
    assert used <= {f"var({variable})" for variable in re.findall(r"--[a-z0-9-]+(?=:)", css)} | {"none"}
    assert not re.search("#[0-9a-f]{6}", markup)


def test_every_colour_has_a_value_in_light_and_dark() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", (ROOT / "auditor/report/page/report.css").read_text(), re.DOTALL)[:2]
    for colour in Colour:
        variable = colour.value.removeprefix("var(").removesuffix(")")
        assert f"{variable}:" in light
        assert f"{variable}:" in dark


@everywhere
def test_the_same_entries_give_the_same_bytes(name: str) -> None:
    assert fresh(name, PLAIN) == drawn(name, PLAIN)


@pytest.mark.parametrize("name", NAMING)
def test_every_deployment_is_named(name: str) -> None:
    assert set(PLAIN) <= set(texts(drawn(name, PLAIN)))


@pytest.mark.parametrize("name", NAMING)
def test_a_name_that_is_too_long_is_cut_and_told_in_full(name: str) -> None:
    markup = drawn(name, TOO_LONG)
    assert any("…" in text for text in texts(markup))
    for each in TOO_LONG:
        assert any(each in title for title in titles(markup))


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("count", [1, 20])
def test_nothing_is_drawn_beside_the_sheet(name: str, count: int) -> None:
    """What is not clipped must not need it; text is measured as broad as letters get."""
    for panel in panels_of(drawn(name, [f"{LONG}-{number}" for number in range(count)])):
        width, height = (float(panel.attrib[side]) for side in ("width", "height"))
        for x, y in points_of(panel):
            assert -3 <= x <= width + 3
            assert -3 <= y <= height + 3
        for text in panel.iter("text"):
            if "transform" not in text.attrib:
                left, right = span(text)
                assert left >= -4, text.text
                assert right <= width + 4, text.text


def points_of(panel: ET.Element) -> Iterator[tuple[float, float]]:
    for path in panel.iter("path"):
        moved = [float(number) for number in re.findall(r"-?[\d.]+", path.get("transform", "0 0"))]
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
        yield from ((x + moved[0], y + moved[1]) for x, y in zip(numbers[::2], numbers[1::2], strict=True))


def is_number_of_a_mark(text: ET.Element) -> bool:
    return (text.text or "").isdecimal() and "font-weight:700" in text.get("style", "")


def span(text: ET.Element) -> tuple[float, float]:
    style = text.get("style", "")
    size = re.search(r"font-size:([\d.]+)px", style)
    assert size is not None
    x, width = float(text.attrib["x"]), text_width(text.text or "", float(size[1]))
    start = {"end": x - width, "middle": x - width / 2}.get(style.partition("text-anchor:")[2].partition(";")[0], x)
    return start, start + width


@everywhere
def test_texts_on_a_line_leave_each_other_room(name: str, thorough: bool) -> None:
    for panel in panels_of(drawn(name, [f"{LONG}-{number}" for number in range(20)] if thorough else TOO_LONG)):
        lines: dict[float, list[tuple[float, float]]] = {}
        for text in panel.iter("text"):
            if "transform" not in text.attrib and not is_number_of_a_mark(text):
                lines.setdefault(float(text.attrib["y"]), []).append(span(text))
        for spans in lines.values():
            for (_, end), (start, _) in pairwise(sorted(spans)):
                assert start >= end - 3


@everywhere
def test_text_can_be_read_and_a_drawing_is_wide_or_made_of_panels_for_a_telephone(name: str) -> None:
    markup = drawn(name, PLAIN)
    assert all(float(size) >= 13 for size in re.findall(r"font-size:([\d.]+)px", markup))
    widths = [float(panel.attrib["width"]) for panel in panels_of(markup)]
    assert all(600 <= width <= 660 or width <= 350 for width in widths)
    for panel in panels_of(re.sub(r'<div class="scroll"[^>]*>.*?</div>', "", markup, flags=re.DOTALL)):
        assert float(panel.attrib["width"]) <= 350


def test_levels_are_named_and_ordered_by_their_mean() -> None:
    shown = texts(drawn("factor", PLAIN))
    assert shown.index("CTO") < shown.index("SC") < shown.index("BJ")
    assert {level for levels in FACTORS_WITH_LEVELS.values() for level in levels} <= set(shown)
    assert {"56.4", "32.8", "7.1"} <= set(shown)
    assert any("56.4 % [54.4, 58.4]" in title for title in titles(drawn("factor", PLAIN)))


def test_the_full_figure_keeps_the_order_and_states_shares_and_ranges() -> None:
    shown = texts(drawn("family", PLAIN))
    assert shown.count("CTO") == shown.count("BJ") == 4
    orders = [[text for text in part if text in FACTORS_WITH_LEVELS["task"]] for part in by_heading(shown, "Task, ")]
    assert len(orders) == 4
    assert all(order == orders[0] for order in orders)
    assert "η² 0.395 [0.371, 0.412]" in shown
    assert "Δ 49.4 pp [46.1, 52.7]" in shown


def by_heading(shown: list[str], heading: str) -> list[list[str]]:
    starts = [place for place, text in enumerate(shown) if text.startswith(heading)]
    return [shown[max(0, start - 20) : start + 20] for start in starts]


def test_the_correction_is_told_in_words_and_sign() -> None:
    corrections = zip(PLAIN, (0.129, -0.04, 0.0), strict=True)
    groups = [group for name, value in corrections for group in group_entries([name], dni=estimate(value, 0.012))]
    shown = texts(decomposition.naive_bars(groups) or "")
    assert {"+12.9", "over-estimates", "\N{MINUS SIGN}4.0", "under-estimates", "+0.0", "sign unclear"} <= set(shown)


def test_judges_are_named_with_their_agreement() -> None:
    shown = texts(drawn("judges", PLAIN))
    assert {"1 J1", "2 J2", "3 J3", "0.757", "0.756", "0.748"} <= {re.sub(" +", " ", text) for text in shown}
    elaboration = [entry for entry in judge_entries(PLAIN) if entry.layer == "elab"]
    alone = judges.judge_dots(elaboration)
    assert alone is not None
    assert len(panels_of(alone)) == 1
    assert {"J1", "J2", "J3"} <= set(texts(alone))


def test_a_swing_shows_its_tasks_and_its_range() -> None:
    markup = drawn("swing", PLAIN)
    assert {"BJ", "SC", "CTO", "72.0 pp", "[66.1, 77.0]"} <= set(texts(markup))
    assert "alpha: 6.4 % at BJ to 78.4 % at CTO" in titles(markup)


def test_the_map_lists_whom_its_numbers_stand_for() -> None:
    shown = texts(drawn("map", PLAIN))
    assert {"1", "2", "3", "cancellation trap", "over-estimates", "under-estimates"} <= set(shown)
    assert shown.count("1") == 2


def test_crossed_cells_print_their_value_and_mark_the_flipped() -> None:
    conditions, cells = crossed_entries(PLAIN)
    shown = texts(crossed.cell_map(conditions, cells) or "")
    for entry in (*conditions, *cells):
        dni = entry.metrics["dni"]
        assert isinstance(dni, EstimateEntry)
        assert condition_text(entry.by) in shown
        assert f"{100 * dni.value:+.1f}".replace("-", "\N{MINUS SIGN}") in shown
    flipped = sum(entry.sign_flip is True for entry in (*conditions, *cells))
    both = ((conditions, cells), crossed_entries(PLAIN, flipped=False))
    paths = [len(list(panels_of(crossed.cell_map(*each) or "")[0].iter("path"))) for each in both]
    assert flipped
    assert paths[0] - paths[1] == flipped


def test_a_map_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions, cells = crossed_entries(PLAIN)
    number = len({condition_text(entry.by) for entry in conditions})
    assert "the table has all" not in (crossed.cell_map(conditions, cells) or "")
    monkeypatch.setattr(crossed, "_MOST", 3)
    assert f"the first 3 of {number} conditions; the table has all" in (crossed.cell_map(conditions, cells) or "")


def test_conditions_that_vary_one_factor_are_no_crossed_design() -> None:
    assert crossed.cell_map(condition_entries(PLAIN), []) is None


def test_cells_that_few_responses_stand_behind_are_hatched() -> None:
    covered, poor = (slices.slice_map("category", slice_values(PLAIN, eligible)) for eligible in (0.8, 0.3))
    paths = [len(list(panels_of(each or "")[0].iter("path"))) for each in (covered, poor)]
    assert paths[1] > paths[0]


def test_the_frontier_is_listed_with_its_recipes() -> None:
    shown = texts(drawn("pareto", PLAIN))
    assert {"On the frontier", "baseline", "balanced, cost constrained", "60", "6.0 %", "max reduction"} <= set(shown)
    assert "SC" not in shown


def test_verdicts_stand_beside_the_changes_or_why_there_is_none() -> None:
    markup = drawn("mitigation", PLAIN)
    assert {"co-reducing", "layer-rerouting", "\N{MINUS SIGN}26.0", "+1.0"} <= set(texts(markup))
    assert "no verdict on 40 statements, 100 needed" in titles(markup)
    assert "the level asks for no discrete answer" in titles(markup)


def test_shares_of_the_deployments_choice_have_their_panel() -> None:
    shown = texts(drawn("shares", PLAIN))
    assert {"Deployment", "either layer", "0.120", "0.395", "all deployments"} <= set(shown)


def test_ranks_and_coverage_print_what_they_draw() -> None:
    assert {f"1{DASH}2", "3"} <= set(texts(drawn("ranks", PLAIN)))
    assert {"71.0", "20.5"} <= set(texts(drawn("coverage", PLAIN)))


def test_a_rate_of_which_only_bounds_hold_has_no_value() -> None:
    rare = dict.fromkeys(LAYERS, estimate(0.0123, 0.007, flags=("bounds_only",)))
    entries = [structs.replace(entry, metrics=rare) for entry in condition_entries(["alpha"])]
    for markup in (prompts.condition_panels(entries), levels.factor_panels(entries, level_entries())):
        assert markup is not None
        assert "1.2 %" not in markup
    assert "≤ 1.9" in texts(prompts.condition_panels(entries) or "")


def test_nothing_to_draw_is_no_figure() -> None:
    assert levels.factor_panels([], []) is None
    assert levels.family_panels([], [], []) is None
    assert variation.swing_bars([], []) is None
    assert crossed.cell_map([], []) is None
    assert slices.slice_map("category", []) is None
    assert basis.coverage_bars([]) is None
    for draw in (
        decomposition.naive_bars,
        judges.judge_dots,
        decomposition.reliability_map,
        crossed.interaction_panel,
        mitigation.pareto_panels,
        rankings.rank_bars,
        variation.share_bars,
        mitigation.mitigation_panels,
        prompts.condition_panels,
    ):
        assert draw([]) is None


def test_entries_that_are_missing_are_left_out() -> None:
    bare_group = group_entries(PLAIN[:1], ber_sel=MISSING, ber_elab=MISSING, ir=MISSING, dni=MISSING)
    for draw in (decomposition.naive_bars, decomposition.reliability_map):
        shown = texts(draw([*bare_group, *group_entries(PLAIN)[1:]]) or "")
        assert "beta" in shown
        assert "alpha" not in shown
        assert draw(bare_group) is None
    unknown = dict.fromkeys(LAYERS, MISSING)
    bare = [structs.replace(entry, metrics=unknown) for entry in condition_entries(PLAIN)]
    assert DASH in texts(prompts.condition_panels(bare) or "")
    unstated = [factor_entry("task", "ber_cor", MISSING, MISSING)]
    assert f"η² {DASH}" in texts(levels.family_panels(bare, level_entries(MISSING), unstated) or "")


def test_twenty_lines_differ_without_their_colour() -> None:
    looks = {(line_look(place).shape, line_look(place).dashes) for place in range(20)}
    assert len(looks) == 20


def test_names_are_cut_in_their_middle_to_the_room_there_is() -> None:
    short = shorten(LONG, 100)
    assert text_width(short) <= 100
    assert short.startswith("azure")
    assert short.endswith("on")
    assert shorten("anything", 1) == "…"


def test_a_shape_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="heart"):
        Plot(10, 10).mark(5, 5, Look(colour=Colour.INK, shape="heart"))
