"""Checks between the parts of a configuration: names that must exist, or must be unique.

They work on the plain data, so that they are told together with everything else that is wrong with a file. What has
the wrong shape is passed over here: the models say so.
"""

from collections.abc import Iterator
from typing import Any

from auditor.config.audits import ALL, LEXICON
from auditor.config.problems import Path
from auditor.config.values import quote, show
from auditor.config.wording import suggest

Found = tuple[Path, str]


def check(data: dict[str, Any]) -> Iterator[Found]:
    """Yield every path whose name does not fit the rest, with the words for it."""
    yield from _check_unique(data)
    yield from _check_routes(data)
    yield from _check_judges(data)
    yield from _check_deployment_lists(data)


def _items(data: Any, *keys: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the mappings of the list at these keys, with their indices."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    for index, item in enumerate(data if isinstance(data, list) else ()):
        if isinstance(item, dict):
            yield index, item


def _texts(item: Any, key: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of the list at this key, with their indices."""
    values = item.get(key) if isinstance(item, dict) else None
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str):
            yield index, value


def _names(data: dict[str, Any], section: str, key: str = "name") -> list[str]:
    return list(dict.fromkeys(item[key] for _, item in _items(data, section) if isinstance(item.get(key), str)))


def _check_known(path: Path, name: Any, kind: str, known: list[str]) -> Iterator[Found]:
    if isinstance(name, str) and name not in known:
        near = suggest(name, known)
        declared = "" if near else (f"; declared: {', '.join(map(show, known[:8]))}" if known else "; none is declared")
        yield path, f"no {kind} is called {quote(name)}{near}{declared}"


def _check_unique(data: dict[str, Any]) -> Iterator[Found]:
    keys = {"deployments": "name", "routes": "model", "audits": "name", "judges": "name", "peers": "domain"}
    for section, key in keys.items():
        first: dict[str, int] = {}
        for index, item in _items(data, section):
            name = item.get(key)
            if not isinstance(name, str):
                continue
            if name in first:
                yield (section, index, key), f"{quote(name)} is declared twice (first as {section}[{first[name]}])"
            first.setdefault(name, index)


def _check_routes(data: dict[str, Any]) -> Iterator[Found]:
    deployments, routes = _names(data, "deployments"), _names(data, "routes", "model")
    audits = _names(data, "audits")
    for index, route in _items(data, "routes"):
        here: Path = ("routes", index)
        yield from _check_weighted(route, here, deployments)
        for kind in ("fallbacks", "context_window_fallbacks", "content_filter_fallbacks"):
            for place, name in _texts(route, kind):
                yield from _check_known((*here, kind, place), name, "route", routes)
                if name == route.get("model"):
                    yield (*here, kind, place), "a route cannot be its own fallback"
        for place, name in _texts(route, "peers"):
            yield from _check_known((*here, "peers", place), name, "deployment or route", deployments + routes)
        yield from _check_known((*here, "audit"), route.get("audit"), "audit", audits)


def _check_weighted(route: dict[str, Any], here: Path, deployments: list[str]) -> Iterator[Found]:
    members = route.get("deployments")
    seen: set[str] = set()
    for index, member in enumerate(members if isinstance(members, list) else ()):
        bare = isinstance(member, str)
        path: Path = (*here, "deployments", index) if bare else (*here, "deployments", index, "name")
        name = member if bare else member.get("name") if isinstance(member, dict) else None
        yield from _check_known(path, name, "deployment", deployments)
        if isinstance(name, str) and name in seen:
            yield path, f"{quote(name)} stands here twice; give it one weight"
        if isinstance(name, str):
            seen.add(name)


def _check_judges(data: dict[str, Any]) -> Iterator[Found]:
    judges = _names(data, "judges")
    for index, judge in _items(data, "judges"):
        yield from _check_asked(data, ("judges", index, "deployment"), judge.get("deployment"), "judge")
    for index, name in _texts(data.get("panel"), "judges"):
        yield from _check_known(("panel", "judges", index), name, "judge", [*judges, LEXICON])
    yield from _check_once(("panel", "judges"), data.get("panel"), "sits on the panel twice")


def _check_asked(data: dict[str, Any], here: Path, name: Any, what: str) -> Iterator[Found]:
    """Check who is asked for: a client names a model with each request, a judge has only its deployment's."""
    nameless = [item.get("name") for _, item in _items(data, "deployments") if item.get("model") is None]
    if isinstance(name, str) and name in nameless:
        yield here, f"deployment {quote(name)} names no model for the {what} to ask for"
    yield from _check_known(here, name, "deployment", _names(data, "deployments"))


def _check_once(here: Path, section: Any, says: str) -> Iterator[Found]:
    names = list(_texts(section, str(here[-1])))
    for index, name in names:
        if name in [earlier for place, earlier in names if place < index]:
            yield (*here, index), f"{quote(name)} {says}"


def _check_deployment_lists(data: dict[str, Any]) -> Iterator[Found]:
    deployments, judges = _names(data, "deployments"), _names(data, "judges")
    for section, also in (("probes", [ALL]), ("peers", [])):
        for index, item in _items(data, section):
            for place, name in _texts(item, "deployments"):
                path: Path = (section, index, "deployments", place)
                yield from _check_known(path, name, "deployment", deployments + also)
    for index, domain in _items(data, "peers"):
        for place, name in _texts(domain, "judges"):
            path = ("peers", index, "judges", place)
            if name == LEXICON:
                yield path, f'"{LEXICON}" reads stances; it cannot score answers'
            else:
                yield from _check_known(path, name, "judge", judges)
        for kind in ("deployments", "judges"):
            yield from _check_once(("peers", index, kind), domain, "stands here twice")
        yield from _check_encoder(data, ("peers", index), domain)
    for index, route in _items(data, "routes"):
        yield from _check_encoder(data, ("routes", index, "mirror"), route.get("mirror"))
    monitor = data.get("monitor")
    anchor = monitor.get("anchor") if isinstance(monitor, dict) else None
    yield from _check_known(("monitor", "anchor"), anchor, "deployment", deployments)


def _check_encoder(data: dict[str, Any], here: Path, section: Any) -> Iterator[Found]:
    embedding = section.get("embedding") if isinstance(section, dict) else None
    name = embedding.get("deployment") if isinstance(embedding, dict) else None
    yield from _check_asked(data, (*here, "embedding", "deployment"), name, "embedder")
