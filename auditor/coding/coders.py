"""Make the coders of the configuration, with ids that change whenever their results could change.

A coder is the selection rules, the judges with their versions and prompts, the rubric, and for clients' traffic the
audit profile. A change of any of these makes another coder, which codes everything again beside the old one.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from auditor.access import GatewayAccess, gateway_access
from auditor.coding.panel import Panel
from auditor.coding.split import OPEN, STATEMENT, TokenFinder, finder_of, selection_coder
from auditor.config import Audit, Config
from auditor.config.audits import LEXICON
from auditor.judges import rubric
from auditor.judges.loading import load_judges

#: The rubric if the audit profile names a proposition.
PROPOSITION: Final = "proposition"


@dataclass(frozen=True, kw_only=True, slots=True)
class Coder:
    """One version of the reading of answers. ``routes`` is ``None`` for the coder of planned calls.

    ``panel`` is ``None`` if no judge may see the answers: the elaboration is then Abstain ``no_judge``. ``finder`` may
    locate the answer to a planned call; clients' traffic is read by its profile's rule only.
    """

    id: str
    rubric: str
    panel: Panel | None
    finder: TokenFinder | None = None
    description: Mapping[str, Any] = field(repr=False)
    audit: Audit | None = None
    routes: tuple[str, ...] | None = None

    @property
    def local(self) -> bool:
        """Return whether coding needs no network."""
        return self.panel is None or self.panel.local


@asynccontextmanager
async def open_coders(config: Config, *, asking: bool = True) -> AsyncIterator[tuple[Coder, ...]]:
    """Make the configuration's coders; their connections close at the end of the block.

    Without ``asking`` the judges are described but not connected.

    Raises
    ------
    UsageError
        A judge is reached through the gateway, and no gateway is known.
    """
    through = gateway_access(config) if asking and needs_gateway(config) else None
    statement, free = (_panel(config, kind, through) for kind in (rubric.STATEMENT, rubric.OPEN))
    try:
        yield (_coder(STATEMENT, statement), *_traffic_coders(config, statement, free))
    finally:
        for panel in (statement, free):
            await panel.aclose()


def needs_gateway(config: Config) -> bool:
    """Return whether a judge of the panel is a deployment."""
    local = {LEXICON, *(judge.name for judge in config.judges if judge.nli is not None)}
    return any(name not in local for name in config.panel.judges)


def _panel(config: Config, kind: str, through: GatewayAccess | None) -> Panel:
    return Panel(judges=load_judges(config.panel.judges, config, rubric=kind, through=through), rubric=kind)


def _traffic_coders(config: Config, statement: Panel, free: Panel) -> Iterator[Coder]:
    for audit in config.audits:
        panel = free if audit.proposition is None else statement
        kind = OPEN if audit.proposition is None else PROPOSITION
        routes = [route for route in config.routes if route.audit == audit.name]
        # Without the route's permission nothing is sent to a judge over the network. Such judges are not left out of
        # the panel either, because a smaller panel is another instrument. Local judges are always allowed.
        shown = tuple(route.model for route in routes if route.judge or panel.local)
        hidden = tuple(route.model for route in routes if not (route.judge or panel.local))
        if shown:
            yield _coder(kind, panel, audit, shown)
        if hidden:
            yield _coder(kind, None, audit, hidden)


def _coder(kind: str, panel: Panel | None, audit: Audit | None = None, routes: tuple[str, ...] | None = None) -> Coder:
    finder = finder_of(panel) if audit is None else None
    description = {
        "rubric": kind,
        "selection": selection_coder(finder),
        "panel": dict(panel.describe()) if panel is not None else None,
        "audit": audit.model_dump(mode="json", by_alias=True) if audit is not None else None,
    }
    named = {**description, "panel": panel.coder if panel is not None else None}
    digest = hashlib.sha256(orjson.dumps(named, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]
    return Coder(
        id=f"{kind}-{digest}",
        rubric=kind,
        panel=panel,
        finder=finder,
        description=description,
        audit=audit,
        routes=routes,
    )
