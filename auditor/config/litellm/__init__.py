"""Convert LiteLLM's proxy configuration into a configuration of Biasmeter.

Settings that have no counterpart are listed with their lines. Secrets are never copied: keys in the file are replaced
by variables, and the list names those to set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from auditor.config.litellm.deployments import PROVIDERS, DeploymentReader
from auditor.config.litellm.problems import ImportProblems
from auditor.config.litellm.settings import EVERY, NamedModel, RouterSettings, read_settings
from auditor.config.litellm.values import LABEL, WEIGHT, Variables, fits, plain
from auditor.config.models import ANY_MODEL
from auditor.config.problems import KeyPath, Problem, format_path, to_error
from auditor.config.yaml_source import compose, parse
from auditor.errors import ConfigError

Route = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMember:
    """A deployment of a group: its row, and LiteLLM's parameters, which contain its weight."""

    row: dict[str, Any]
    params: dict[str, Any]
    path: KeyPath


#: The deployments of one ``model_name``.
Group = list[GroupMember]


def build_routes(groups: dict[str, Group], settings: RouterSettings, problems: ImportProblems) -> list[Route]:
    """Return the routes."""
    routes = {
        name: {"model": name, "deployments": _weigh(group, problems)} for name, group in _name_groups(groups, problems)
    }
    targets = dict(_add_aliases(routes, settings.aliases, problems))
    for kind, table in settings.fallbacks.items():
        _check_fallbacks(table, routes, problems)
        for name, route in routes.items():
            own = table.get(name) or table.get(targets.get(name, name)) or table.get(EVERY, [])
            if kept := [one for one in dict.fromkeys(target.model for target in own) if one in routes and one != name]:
                route[kind] = kept
    return list(routes.values())


def _name_groups(groups: dict[str, Group], problems: ImportProblems) -> Iterator[tuple[str, Group]]:
    """Yield the groups with the names of their routes. One pattern, such as ``openai/*``, can be the route ``*``."""
    rest = ANY_MODEL in groups
    for name, group in groups.items():
        if "*" not in name or name == ANY_MODEL:
            yield name, group
            continue
        here = (*group[0].path, "model_name")
        if rest or not name.endswith("/*") or "*" in name[:-1]:
            problems.leave(here, "a route is for one model, or for all that no other route names")
            continue
        rest = True
        problems.leave(here, f"becomes the route for all other models; clients ask for them without {name[:-1]}")
        yield ANY_MODEL, group


def _weigh(group: Group, problems: ImportProblems) -> list[dict[str, Any]]:
    """Weight deployments as LiteLLM does, by the parameter that the first one has."""
    by = next((key for key in ("weight", "rpm", "tpm") if group[0].params.get(key) is not None), None)
    if by is None or len(group) == 1:
        return [{"name": one.row["name"]} for one in group]
    weights = [fits(WEIGHT, one.params.get(by) or 0) for one in group]
    known = [weight for weight in weights if weight is not None]
    if len(known) < len(group) or not any(known):
        problems.leave(
            (*group[0].path, "litellm_params", by),
            "these cannot be converted into weights: all deployments have the same weight",
        )
        return [{"name": one.row["name"]} for one in group]
    return [{"name": one.row["name"], "weight": plain(weight)} for one, weight in zip(group, known, strict=True)]


def _add_aliases(
    routes: dict[str, Route], aliases: dict[str, NamedModel], problems: ImportProblems
) -> Iterator[tuple[str, str]]:
    """Add a route for each alias; yield the alias and its model."""
    declared = set(routes)
    for alias, target in aliases.items():
        if target.model not in declared:
            problems.leave(target.path, "is an alias of a model that was not carried over")
        elif alias in routes:
            problems.leave(target.path, "is also the name of a model; the model is used")
        elif fits(LABEL, alias) is None or "*" in alias:
            problems.leave(target.path, "the name is not valid for a model here")
        else:
            routes[alias] = {"model": alias, "deployments": [dict(one) for one in routes[target.model]["deployments"]]}
            yield alias, target.model


def _check_fallbacks(table: dict[str, list[NamedModel]], routes: dict[str, Route], problems: ImportProblems) -> None:
    for model, targets in table.items():
        for target in targets:
            if model not in routes and model != EVERY:
                problems.leave(target.path, "is for a model that was not carried over")
            elif target.model not in routes:
                problems.leave(target.path, "names a model that was not carried over")
            elif target.model == model:
                problems.leave(target.path, "a route cannot be its own fallback")


__all__ = ["Imported", "NotCarried", "convert"]

#: Keys of ``litellm_params`` that must be text.
_TEXTS: Final = ("model", "custom_llm_provider", "api_base", "base_url", "api_key", "api_version", "organization")


@dataclass(frozen=True, kw_only=True, slots=True)
class NotCarried:
    """A setting that was not carried over: its place, and the reason."""

    at: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The text of the new configuration, the names in it, and the settings that are not in it."""

    text: str
    deployments: tuple[str, ...]
    routes: tuple[str, ...]
    not_carried: tuple[NotCarried, ...]


def convert(text: str, source: str) -> Imported:
    """Convert a LiteLLM configuration.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for messages.

    Raises
    ------
    ConfigError
        The text is not YAML or has the wrong shape, or contains no deployment. One line per problem.
    """
    if compose(text) is None:
        raise ConfigError(f"{source}: is empty; it needs a model_list")
    document = parse(text, source)
    if document.data is None or document.problems:
        raise to_error(document.problems, source)
    problems = ImportProblems(document.places)
    groups = _read_models(document.data, problems, Variables(text, [one.key for one in PROVIDERS.values() if one.key]))
    settings = read_settings(document.data, problems)
    if problems.wrong:
        raise to_error(problems.wrong, source)
    routes = build_routes(groups, settings, problems)
    if not routes:
        nothing = Problem(
            line=document.places.line(("model_list",)), message="contains no entry that can be a deployment"
        )
        raise to_error([nothing, *problems.not_carried], source)
    used = {member["name"] for route in routes for member in route["deployments"]}
    deployments = [member.row for group in groups.values() for member in group if member.row["name"] in used]
    gateway = {"gateway": settings.gateway} if settings.gateway else {}
    left = tuple(
        NotCarried(at=f"{source}:{one.line}: {format_path(one.path)}", why=one.message)
        for one in sorted(problems.not_carried, key=lambda one: one.line or 0)
    )
    return Imported(
        text=_write({**gateway, "deployments": deployments, "routes": routes}, source, left),
        deployments=tuple(one["name"] for one in deployments),
        routes=tuple(one["model"] for one in routes),
        not_carried=left,
    )


def _read_models(data: dict[str, Any], problems: ImportProblems, variables: Variables) -> dict[str, Group]:
    """Read ``model_list``: the deployments of each name."""
    reader = DeploymentReader(problems, variables)
    groups: dict[str, Group] = {}
    if not data.get("model_list"):
        problems.refuse(("model_list",), "is needed: a list of models")
    for index, entry in enumerate(problems.items(data, "model_list")):
        path: KeyPath = ("model_list", index)
        name, params, info = _read_entry(entry, path, problems)
        if params is None:
            continue
        problems.leave_rest(entry, path, {"model_name", "litellm_params", "model_info"})
        problems.leave_rest(info, (*path, "model_info"), {"input_cost_per_token", "output_cost_per_token"})
        if fits(LABEL, name) is None:
            problems.leave((*path, "model_name"), "is not a valid name of a model here")
        elif (row := reader.read(params, info, (*path, "litellm_params"))) is not None:
            groups.setdefault(name, []).append(GroupMember(row=row, params=params, path=path))
    return groups


def _read_entry(
    entry: Any, path: KeyPath, problems: ImportProblems
) -> tuple[str, dict[str, Any] | None, dict[str, Any]]:
    """Return an entry's name, ``litellm_params`` and ``model_info``; parameters are None if the shape is wrong."""
    wrong = len(problems.wrong)
    if not isinstance(entry, dict):
        problems.refuse(path, "must be a mapping with model_name and litellm_params")
        return "", None, {}
    name = entry.get("model_name")
    if not isinstance(name, str):
        problems.refuse((*path, "model_name"), "must be text")
    params = problems.mapping(entry, "litellm_params", path)
    for key in _TEXTS:
        value = params.get(key)
        if not isinstance(value, str) and (value is not None or key == "model"):
            problems.refuse((*path, "litellm_params", key), "must be text")
    info = problems.mapping(entry, "model_info", path)
    return str(name), params if len(problems.wrong) == wrong else None, info


def _write(content: dict[str, Any], source: str, left: tuple[NotCarried, ...]) -> str:
    notes = [f"  {one.at}: {one.why}" for one in left]
    lines = [f"Made from {source} by biasmeter import-config.", *(["Not carried over:", *notes] if notes else [])]
    printable = ("".join(one if one.isprintable() else "?" for one in line) for line in lines)
    comment = "".join(f"# {line}\n" for line in printable)
    return comment + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=4096)
