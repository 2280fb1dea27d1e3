"""A lower rate against its tokens: the configurations, and which of them suits which use (Tables XIV and XV)."""

from typing import Any, Final

from auditor.report.cells import Cell, choice, decimal, estimate, number, share
from auditor.report.part import Part
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import TIMES, listed, plain, yes_no

_NOT_WEIGHED: Final = Place({"missing": "not weighed"})


def tradeoffs(part: Part) -> list[dict[str, Any]]:
    """Lay out each outcome's trade-off over all deployments."""
    pooled = [entry for entry in part.entries("tradeoff") if not entry.value["by"]]
    return [
        {
            "options": _option_table(entry),
            "recipes": _recipe_table(entry),
            "left_out": listed([str(name.value) for name in entry.at("left_out")]),
        }
        for entry in pooled
    ]


def _option_table(entry: Place) -> Table | None:
    rows = [
        Row(
            name=str(option.value["name"]),
            cells=[
                share(option.at("rate")),
                share(option.at("reduction")),
                estimate(option.at("dni"), "dni", sized=True),
                decimal(option.at("tokens"), 1),
                _times(option.at("cost")),
                choice(option.at("on_frontier"), yes_no),
                share(option.at("frontier_share")),
            ],
            kind="best" if option.value["on_frontier"] else "",
        )
        for option in sorted(entry.at("options"), key=lambda option: (option.value["rate"], option.value["tokens"]))
    ]
    outcome = entry.value["outcome"]
    heads = ["configuration", head(outcome), "reduction", head("dni"), "tokens", "cost", "on frontier", "of replicates"]
    return table("Rate against completion tokens, lowest rate first", heads, rows, source="Table XIV")


def _times(place: Place) -> Cell:
    return number(place, f"{{:.1f}}{TIMES}".format)


def _recipe_table(entry: Place) -> Table | None:
    """Lay out the recipes, each with the rate and the cost of its configuration."""
    options = {option.value["name"]: option for option in entry.at("options")}
    rows = [
        Row(
            name=plain(recipe.value["use"]),
            cells=[
                choice(recipe.at("name")),
                *_weighed(options.get(recipe.value["name"], _NOT_WEIGHED)),
                share(recipe.at("support")),
            ],
        )
        for recipe in entry.at("recipes")
    ]
    heads = ["use", "configuration", head(entry.value["outcome"]), "cost", "chosen again in"]
    return table("Recipes by use", heads, rows, source="Table XV")


def _weighed(option: Place) -> list[Cell]:
    return [share(option.at("rate")), _times(option.at("cost"))]
