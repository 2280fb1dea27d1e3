"""Warn about risks in a valid configuration, without any connection.

``reach`` connects to what the configuration names; both return rows of one table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from auditor.config import Address, Config, Places, format_duration
from auditor.config.audits import LEXICON
from auditor.errors import AuditError
from auditor.peers.domains import configured_domain

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRow:
    """One line of the table: what was looked at, how it stands, and where it is declared."""

    state: State
    kind: str
    name: str
    detail: str
    where: str


def place(places: Places, *path: str | int) -> str:
    """Return the line of a declaration, or "default"."""
    return places.at(*path) if path in places.lines else "default"


def advise(config: Config, places: Places) -> Iterator[CheckRow]:
    """Yield settings that are risky or leave the audit without a result."""
    yield from _advise_addresses(config, places)
    yield from _advise_capture(config, places)
    yield from _advise_vendors(config, places)
    yield from _advise_prices(config, places)
    yield from _advise_peers(config, places)


def _advise_addresses(config: Config, places: Places) -> Iterator[CheckRow]:
    gateway, auditor = config.gateway.listen, config.auditor.listen
    where = place(places, "gateway", "listen")
    if not gateway.is_loopback:
        detail = "reachable from other machines: every request needs a client key (biasmeter key create)"
        if config.gateway.auth == "open":
            detail = "reachable from other machines with auth: open: anyone there can spend the providers' keys"
        yield CheckRow(state="warning", kind="gateway", name=str(gateway), detail=detail, where=where)
    if not auditor.is_loopback:
        detail = "reachable from other machines: refuses to start until a key exists (biasmeter key create)"
        where = place(places, "auditor", "listen")
        yield CheckRow(state="warning", kind="auditor", name=str(auditor), detail=detail, where=where)
    if _overlap(gateway, auditor):
        detail = "the gateway has the same address: on one machine only one of the two can use it"
        where = place(places, "auditor", "listen")
        yield CheckRow(state="warning", kind="auditor", name=str(auditor), detail=detail, where=where)


def _overlap(first: Address, other: Address) -> bool:
    anywhere = {"", "0.0.0.0", "::"}  # noqa: S104 -- compared with, not bound to
    same = first.host == other.host or bool({first.host, other.host} & anywhere)
    return first.port == other.port != 0 and same


def _advise_capture(config: Config, places: Places) -> Iterator[CheckRow]:
    kept = format_duration(config.retention.content)
    for index, route in enumerate(config.routes):
        if route.capture == "full" and route.sample > 0:
            detail = f"capture: full: sampled prompts and answers of clients are stored for {kept}"
            where = place(places, "routes", index, "capture")
            yield CheckRow(state="warning", kind="route", name=route.model, detail=detail, where=where)


def _advise_vendors(config: Config, places: Places) -> Iterator[CheckRow]:
    """Yield the judges that would judge their own vendor's deployments."""
    vendors = {deployment.name: deployment.vendor for deployment in config.deployments}
    audited = _audited(config)
    for index, judge in enumerate(config.judges):
        vendor = vendors[judge.deployment] if judge.deployment is not None else None
        same_vendor = [name for name in audited if vendor is not None and vendors[name] == vendor]
        if same_vendor and judge.name in config.panel.judges:
            detail = f"its vendor {vendor} is also that of the audited {', '.join(same_vendor)}"
            where = place(places, "judges", index)
            yield CheckRow(state="warning", kind="judge", name=judge.name, detail=detail, where=where)
    if LEXICON in config.panel.judges:
        detail = "the built-in word list needs no network, but makes more errors than a language model"
        where = place(places, "panel", "judges")
        yield CheckRow(state="warning", kind="judge", name=LEXICON, detail=detail, where=where)


def _audited(config: Config) -> tuple[str, ...]:
    """Return the names of the audited deployments in the order of the file."""
    names = {member.name for route in config.routes if route.sample > 0 for member in route.deployments}
    for probe in config.probes:
        names.update(config.probed(probe))
    for domain in config.peers:
        names.update(domain.deployments)
    return tuple(deployment.name for deployment in config.deployments if deployment.name in names)


def _advise_prices(config: Config, places: Places) -> Iterator[CheckRow]:
    for index, deployment in enumerate(config.deployments):
        if deployment.price is None:
            detail = "has no price: what it costs can be neither estimated nor limited"
            where = place(places, "deployments", index)
            yield CheckRow(state="warning", kind="deployment", name=deployment.name, detail=detail, where=where)


def _advise_peers(config: Config, places: Places) -> Iterator[CheckRow]:
    for index, domain in enumerate(config.peers):
        try:
            configured_domain(domain)
        except AuditError as error:
            where = place(places, "peers", index, "questions")
            yield CheckRow(state="problem", kind="peers", name=domain.domain, detail=str(error), where=where)
        if len(domain.deployments) < 3:
            detail = "under three deployments, none has the two peers that a comparison needs"
            where = place(places, "peers", index, "deployments")
            yield CheckRow(state="warning", kind="peers", name=domain.domain, detail=detail, where=where)
