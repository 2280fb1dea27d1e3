"""Load the configuration from a file, or from the environment alone, and check the names across its parts.

These checks use the plain data, so that their problems are reported together with all others. Data of the wrong shape
are skipped, because the models report them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from auditor.config import yaml_source
from auditor.config.audits import ALL, LEXICON
from auditor.config.models import WITHHELD, Config
from auditor.config.problems import KeyPath, Problem, suggest, to_error, word
from auditor.config.routes import ANY_MODEL
from auditor.config.values import quote, show
from auditor.config.yaml_source import Places, YamlDocument, read_text
from auditor.errors import ConfigError

#: Only here an unset variable means that the key is absent, which selects the embedded store.
OPTIONAL: Final = frozenset({("store", "url")})

_WHOLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_ANYWHERE: Final = re.compile(r"\$\{[^}]*\}")


@dataclass(slots=True)
class Substitution:
    """Replace ``${NAME}`` in a document by environment variables; it must be the whole of a value."""

    environ: Mapping[str, str]
    places: Places
    #: Whether secrets of deployments are replaced by a word, so that their variables need not be set.
    withhold: bool
    problems: list[Problem] = field(default_factory=list)
    #: Paths with a value from a variable, which errors never show, and the variable's name.
    filled: dict[KeyPath, str] = field(default_factory=dict)

    def apply(self, value: Any, path: KeyPath = ()) -> Any:
        """Replace every variable at or below ``path``; one that is not usable becomes None."""
        if isinstance(value, dict):
            return {key: self.apply(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.apply(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and _ANYWHERE.search(value):
            return self._fill(value, path)
        return value

    def _fill(self, value: str, path: KeyPath) -> str | None:
        whole = _WHOLE.fullmatch(value)
        if whole is None:
            self._refuse(path, f"{_word(value)}: a variable must be the whole value, written ${{NAME}}")
            return None
        name = whole[1]
        if self.withhold and _is_upstream_secret(path):
            return WITHHELD
        content = self.environ.get(name)
        if path in OPTIONAL and not content:
            return None
        if not content:
            self._refuse(path, f"the environment variable {name} is {'not set' if content is None else 'empty'}")
            return None
        if any("\ud800" <= character <= "\udfff" for character in content):
            self._refuse(path, f"the environment variable {name} is not UTF-8")
            return None
        self.filled[path] = name
        return content

    def _refuse(self, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(line=self.places.line(path), path=path, message=message))


def _is_upstream_secret(path: KeyPath) -> bool:
    return path[:1] == ("deployments",) and path[2:3] in {("api_key",), ("headers",)}


def _word(value: str) -> str:
    """Describe the first reference only, because the text around it may be part of a secret."""
    match = _ANYWHERE.search(value)
    reference = match[0] if match else value
    if reference == value:
        return f"{quote(reference)} does not name a variable"
    return f"{quote(reference)} is inside a longer text"


OPENAI_URL: Final = "https://api.openai.com/v1"
#: The model that audits ask OpenAI for where nobody names one.
OPENAI_MODEL: Final = "gpt-4o-mini"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedConfig:
    """A configuration, and the lines of its parts in the file."""

    config: Config
    places: Places


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """Load a configuration file.

    Raises
    ------
    ConfigError
        One line per problem, each with file and line.
    """
    return read(path, environ).config.from_file(path)


def load_without_upstream_keys(path: Path, environ: Mapping[str, str]) -> Config:
    """Load a configuration file for a process that asks no deployment itself; raises as ``load`` does.

    It holds no secret of a deployment, needs none of their variables, and has the same hash.
    """
    return read(path, environ, withhold=True).config.without_upstream_keys().from_file(path)


def read(path: Path, environ: Mapping[str, str], *, withhold: bool = False) -> LoadedConfig:
    """Load a configuration file with the lines of its parts; parameters and errors are those of ``loads``."""
    text = read_text(path, advice="; pass the configuration with -c")
    return loads(text, source=str(path), folder=path.absolute().parent, environ=environ, withhold=withhold)


def loads(text: str, *, source: str, folder: Path, environ: Mapping[str, str], withhold: bool = False) -> LoadedConfig:
    """Load a configuration from text; raises as ``load`` does.

    Parameters
    ----------
    folder
        The folder that relative paths in the text are relative to.
    withhold
        Do not read the variables of secrets of deployments.
    """
    document = yaml_source.parse(text, source)
    if document.data is None:
        raise to_error(document.problems, source)
    substitution = Substitution(environ=environ, places=document.places, withhold=withhold)
    data = substitution.apply(document.data)
    problems = [*document.problems, *substitution.problems]
    problems += [Problem(line=document.places.line(path), path=path, message=message) for path, message in check(data)]
    config: Config | None = None
    try:
        config = Config.model_validate(data, context={"folder": folder, "environ": environ})
    except ValidationError as error:
        problems += _word_all(error, document, substitution.filled, {problem.path for problem in problems})
    if config is None or problems:
        raise to_error(problems, source)
    upstream = (name for path, name in substitution.filled.items() if _is_upstream_secret(path))
    return LoadedConfig(config=config.with_upstream_variables(upstream), places=document.places)


def default_config(environ: Mapping[str, str], port: int | None = None, model: str | None = None) -> Config:
    """Make the configuration without a file: OpenAI, or a server with its protocol, behind one route.

    The gateway listens on ``port`` of this machine and the auditor on the next one; ``None`` selects the default ports.
    Audits ask for ``model``, which has a route of its own; without one nothing can be audited.

    Raises
    ------
    ConfigError
        Neither a key nor a base URL is set, or one of them cannot be used.
    """
    key, url = environ.get("OPENAI_API_KEY"), environ.get("OPENAI_BASE_URL")
    if not key and not url:
        raise ConfigError(
            "no configuration found: set OPENAI_API_KEY (or OPENAI_BASE_URL for a server that needs no key), "
            "or write a biasmeter.yaml and pass it with -c"
        )
    deployment: dict[str, Any] = {"name": "openai", "base_url": url or OPENAI_URL, "api_key": key or None}
    if not url:
        deployment["vendor"] = "openai"
    models = [ANY_MODEL] if model is None else [model, ANY_MODEL]
    routes = [
        {"model": route_model, "deployments": ["openai"], "sample": 1.0, "capture": "hashed"} for route_model in models
    ]
    made: dict[str, Any] = {"deployments": [deployment], "routes": routes}
    if port is not None:
        made |= {"gateway": {"listen": f"127.0.0.1:{port}"}, "auditor": {"listen": f"127.0.0.1:{port + 1}"}}
    try:
        return Config.model_validate(made, context={"environ": environ})
    except ValidationError as error:
        lines = [_word_default(entry["loc"], word(entry, Config, hide=True)) for entry in error.errors()]
        raise ConfigError("\n".join(lines)) from None


def _word_default(path: KeyPath, words: str) -> str:
    names = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
    last = str(path[-1]) if path else ""
    return f"{names.get(last, last)}: {words}"


def _word_all(
    error: ValidationError, document: YamlDocument, filled: Collection[KeyPath], reported: set[KeyPath]
) -> list[Problem]:
    """Describe the problems that pydantic found, except those that follow from another one."""
    errors = error.errors()
    below = {path[:length] for path in reported | {entry["loc"] for entry in errors} for length in range(len(path))}
    problems = []
    for entry in errors:
        path = entry["loc"]
        follows = any(path[:length] in reported for length in range(1, len(path) + 1))
        # pydantic drops refused items, and then reports that the list is too short.
        if follows or (entry["type"] == "too_short" and path in below):
            continue
        message = word(entry, Config, hide=path in filled)
        problems.append(Problem(line=document.places.line(path), path=path, message=message))
    return problems


LocatedMessage = tuple[KeyPath, str]


def check(data: dict[str, Any]) -> Iterator[LocatedMessage]:
    """Yield every path with a wrong name, with the message."""
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


def _check_known(path: KeyPath, name: Any, kind: str, known: list[str]) -> Iterator[LocatedMessage]:
    if isinstance(name, str) and name not in known:
        near = suggest(name, known)
        declared = "" if near else (f"; declared: {', '.join(map(show, known[:8]))}" if known else "; none is declared")
        yield path, f"there is no {kind} named {quote(name)}{near}{declared}"


def _check_unique(data: dict[str, Any]) -> Iterator[LocatedMessage]:
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


def _check_routes(data: dict[str, Any]) -> Iterator[LocatedMessage]:
    deployments, routes = _names(data, "deployments"), _names(data, "routes", "model")
    audits = _names(data, "audits")
    for index, route in _items(data, "routes"):
        here: KeyPath = ("routes", index)
        yield from _check_weighted(route, here, deployments)
        for kind in ("fallbacks", "context_window_fallbacks", "content_filter_fallbacks"):
            for place, name in _texts(route, kind):
                yield from _check_known((*here, kind, place), name, "route", routes)
                if name == route.get("model"):
                    yield (*here, kind, place), "a route cannot be its own fallback"
        for place, name in _texts(route, "peers"):
            yield from _check_known((*here, "peers", place), name, "deployment or route", deployments + routes)
        yield from _check_known((*here, "audit"), route.get("audit"), "audit", audits)
        yield from _check_units((*here, "mitigation"), route, data)
        members = [member for member in _member_names(route) if isinstance(member, str)]
        policies = route.get("on_finding")
        for number, policy in enumerate(policies if isinstance(policies, list) else ()):
            for place, name in _texts(policy, "to"):
                yield from _check_known(
                    (*here, "on_finding", number, "to", place), name, "deployment of the route", members
                )


def _check_units(here: KeyPath, route: dict[str, Any], data: dict[str, Any]) -> Iterator[LocatedMessage]:
    """Check that the units of a trial are the clusters of its audit, as intervals and the stop rule assume."""
    mitigation = route.get("mitigation")
    if not isinstance(mitigation, dict):
        return
    audit = next((entry for _, entry in _items(data, "audits") if entry.get("name") == route.get("audit")), {})
    cluster = audit.get("cluster")
    if mitigation.get("assign") == "conversation":
        if not isinstance(cluster, dict) or "tag" not in cluster:
            yield (*here, "assign"), "conversation needs the tag of conversations as the audit's cluster: {tag: NAME}"
    elif cluster is not None:
        yield (*here, "assign"), "user needs an audit without cluster: its clusters are then the users"


def _member_names(route: dict[str, Any]) -> list[Any]:
    members = route.get("deployments")
    listed = members if isinstance(members, list) else []
    return [member.get("name") if isinstance(member, dict) else member for member in listed]


def _check_weighted(route: dict[str, Any], here: KeyPath, deployments: list[str]) -> Iterator[LocatedMessage]:
    members = route.get("deployments")
    seen: set[str] = set()
    for index, member in enumerate(members if isinstance(members, list) else ()):
        bare = isinstance(member, str)
        path: KeyPath = (*here, "deployments", index) if bare else (*here, "deployments", index, "name")
        name = member if bare else member.get("name") if isinstance(member, dict) else None
        yield from _check_known(path, name, "deployment", deployments)
        if isinstance(name, str) and name in seen:
            yield path, f"{quote(name)} is listed twice; list it once with one weight"
        if isinstance(name, str):
            seen.add(name)


def _check_judges(data: dict[str, Any]) -> Iterator[LocatedMessage]:
    judges = _names(data, "judges")
    for index, judge in _items(data, "judges"):
        yield from _check_has_model(data, ("judges", index, "deployment"), judge.get("deployment"), "judge")
    for index, name in _texts(data.get("panel"), "judges"):
        yield from _check_known(("panel", "judges", index), name, "judge", [*judges, LEXICON])
    yield from _check_once(("panel", "judges"), data.get("panel"), "is on the panel twice")


def _check_has_model(data: dict[str, Any], here: KeyPath, name: Any, what: str) -> Iterator[LocatedMessage]:
    """Check that a deployment names a model: a client names one with each request, a judge does not."""
    nameless = [item.get("name") for _, item in _items(data, "deployments") if item.get("model") is None]
    if isinstance(name, str) and name in nameless:
        yield here, f"deployment {quote(name)} has no model, which the {what} needs"
    yield from _check_known(here, name, "deployment", _names(data, "deployments"))


def _check_once(here: KeyPath, section: Any, message: str) -> Iterator[LocatedMessage]:
    names = list(_texts(section, str(here[-1])))
    for index, name in names:
        if name in [earlier for place, earlier in names if place < index]:
            yield (*here, index), f"{quote(name)} {message}"


def _check_deployment_lists(data: dict[str, Any]) -> Iterator[LocatedMessage]:
    deployments, judges = _names(data, "deployments"), _names(data, "judges")
    stance_readers = [judge.get("name") for _, judge in _items(data, "judges") if judge.get("nli") is not None]
    for section, also in (("probes", [ALL]), ("peers", [])):
        for index, item in _items(data, section):
            for place, name in _texts(item, "deployments"):
                path: KeyPath = (section, index, "deployments", place)
                yield from _check_known(path, name, "deployment", deployments + also)
    for index, domain in _items(data, "peers"):
        for place, name in _texts(domain, "judges"):
            path = ("peers", index, "judges", place)
            if name in (LEXICON, *stance_readers):
                yield path, f"{quote(name)} is a judge of stances only; it cannot score answers"
            else:
                yield from _check_known(path, name, "judge", judges)
        for kind in ("deployments", "judges"):
            yield from _check_once(("peers", index, kind), domain, "is listed twice")
        yield from _check_encoder(data, ("peers", index), domain)
    for index, route in _items(data, "routes"):
        yield from _check_encoder(data, ("routes", index, "mirror"), route.get("mirror"))
    monitor = data.get("monitor")
    anchor = monitor.get("anchor") if isinstance(monitor, dict) else None
    yield from _check_known(("monitor", "anchor"), anchor, "deployment", deployments)


def _check_encoder(data: dict[str, Any], here: KeyPath, section: Any) -> Iterator[LocatedMessage]:
    embedding = section.get("embedding") if isinstance(section, dict) else None
    name = embedding.get("deployment") if isinstance(embedding, dict) else None
    yield from _check_has_model(data, (*here, "embedding", "deployment"), name, "embedder")
