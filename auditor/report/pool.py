"""The page of a pool: its data card, drawings of its balance, the checks, and the statements themselves.

Made from the document of ``auditor.instrument.pool_report`` alone; the same document gives the same bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.report.figures import balance
from auditor.report.templating import environment

#: Findings of a check, and statements, that the page shows; all of them are in pool.json.
MAX_FINDINGS: Final = 20
MAX_STATEMENTS: Final = 1000


def render_pool(document: Mapping[str, Any]) -> bytes:
    """Render the page."""
    templates = environment(PackageLoader("auditor.report", "page"))
    templates.filters["plain"] = lambda name: name.replace("_", " ")
    page = templates.get_template("pool.html.j2").render(
        document=document,
        figures=_figures(document),
        max_findings=MAX_FINDINGS,
        max_statements=MAX_STATEMENTS,
        groups=_groups(document["statements"][:MAX_STATEMENTS]),
    )
    return page.encode("utf-8")


def _groups(statements: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in statements:
        groups.setdefault(one["category"] or "no category", []).append(one)
    return groups


def _figures(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Draw each measure by category; the keys name the parts of a bar in their order."""
    own = document["categories"]
    joined = balance.counts(own, "n_intersectional", "Statements by category, the intersectional ones apart")
    placed = balance.counts(own, "n_regional", "Statements by category, those that lean on a region apart")
    first = balance.shares(own, "first", ("stereotype", "counter"), "Share of scenes by the group named first")
    places = ("start", "middle", "end")
    blank = balance.shares(own, "blank", places, "Share of completions by where the blank is")
    return [
        {"title": "Statements", "keys": ("of one disadvantage", "intersectional"), "svg": joined},
        {"title": "Leaning on local law or culture", "keys": ("no", "yes"), "svg": placed},
        {"title": "Named first in the scene", "keys": ("stereotyped group", "the other"), "svg": first},
        {"title": "Place of the blank", "keys": places, "svg": blank},
        {"title": "Stereotyped group's name longer by", "keys": ("characters",), "svg": balance.lengths(own)},
        {"title": "Reading grade", "keys": ("years of school",), "svg": balance.grades(own)},
    ]
