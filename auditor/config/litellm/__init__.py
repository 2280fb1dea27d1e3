"""Convert LiteLLM's proxy configuration into a configuration of Biasmeter.

Settings that have no counterpart are listed with their lines. Secrets are never copied: keys in the file are replaced
by variables, and the list names those to set.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from auditor.config.litellm.deployments import PROVIDERS, DeploymentReader
from auditor.config.litellm.problems import ImportProblems, Left, Severity
from auditor.config.litellm.settings import EVERY, NamedModel, RouterSettings, read_settings
from auditor.config.litellm.values import LABEL, WEIGHT, Variables, fits, plain
from auditor.config.problems import KeyPath, Problem, format_path, to_error
from auditor.config.routes import ANY_MODEL
from auditor.config.yaml_source import compose, parse
from auditor.errors import ConfigError

__all__ = ["Imported", "NotCarried", "Severity", "convert", "summary"]

#: Keys of ``litellm_params`` that must be text.
_TEXTS: Final = ("model", "custom_llm_provider", "api_base", "base_url", "api_key", "api_version", "organization")
#: Parameters of a deployment that weigh it, in LiteLLM's order.
_WEIGHTS: Final = ("weight", "rpm", "tpm")
#: Modes of ``model_info`` whose requests are not relayed.
_NOT_RELAYED: Final = {
    "audio_transcription": "requests with a file (a form) are not relayed: they get 415",
    "realtime": "WebSockets are not relayed: they get 404",
}
#: Headings of the list of settings that are not carried over.
_HEADINGS: Final = {
    Severity.BREAKS: "breaks traffic until somebody acts",
    Severity.CHANGES: "changes behaviour",
    Severity.IGNORED: "without effect on requests",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NotCarried:
    """A setting that was not carried over: its place, the reason and the consequence."""

    at: str
    why: str
    severity: Severity


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The text of the new configuration, the names in it, and the settings that are not in it, the worst first."""

    text: str
    deployments: tuple[str, ...]
    routes: tuple[str, ...]
    not_carried: tuple[NotCarried, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _GroupMember:
    """A deployment of a group: its row, and LiteLLM's parameters, which contain its weight."""

    row: dict[str, Any]
    params: dict[str, Any]
    path: KeyPath


@dataclass(frozen=True, kw_only=True, slots=True)
class _LostModel:
    """A name that clients ask for and that has lost a deployment, or all of them, and what was said about that."""

    name: str
    left: Left

    def tell_consequence(self, routes: Container[str]) -> None:
        """Add what happens to requests for the name, now that the routes are known."""
        problem = self.left.problem
        if self.name in routes:
            self.left.severity = Severity.CHANGES
            then = f"the other deployments of {self.name} get its share"
        elif ANY_MODEL in routes:
            then = f"requests for {self.name} fall through to the route *, whose deployments get that name"
        else:
            then = f"requests for {self.name} get 404"
        self.left.problem = replace(problem, message=f"{problem.message}; {then}")


#: The deployments of one ``model_name``.
_Group = list[_GroupMember]
_Route = dict[str, Any]


def convert(text: str, source: str) -> Imported:
    """Convert a LiteLLM configuration.

    Parameters
    ----------
    text
        The file's content.
    source
        Name of the file, for messages.

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
    lost: list[_LostModel] = []
    variables = Variables(text, [provider.key for provider in PROVIDERS.values() if provider.key])
    groups = _read_models(document.data, problems, variables, lost)
    settings = read_settings(document.data, problems)
    if problems.wrong:
        raise to_error(problems.wrong, source)
    routes = _build_routes(groups, settings, problems, lost)
    if not routes:
        nothing = Problem(
            line=document.places.line(("model_list",)), message="contains no entry that can be a deployment"
        )
        raise to_error([nothing, *(entry.problem for entry in problems.not_carried)], source)
    used = {member["name"] for route in routes for member in route["deployments"]}
    deployments = [member.row for group in groups.values() for member in group if member.row["name"] in used]
    gateway = {"gateway": settings.gateway} if settings.gateway else {}
    content = {**gateway, "deployments": deployments, "routes": routes}
    _judge_variables(problems.not_carried, yaml.safe_dump(content))
    left = tuple(_not_carried(entry, source) for entry in sorted(problems.not_carried, key=_order))
    return Imported(
        text=_write(content, source, left),
        deployments=tuple(deployment["name"] for deployment in deployments),
        routes=tuple(route["model"] for route in routes),
        not_carried=left,
    )


def summary(not_carried: Sequence[NotCarried]) -> Iterator[str]:
    """Yield the lines of a list of settings that are not carried over, under a heading for each severity."""
    for severity, heading in _HEADINGS.items():
        entries = [entry for entry in not_carried if entry.severity is severity]
        if entries:
            yield f"{heading.capitalize()} ({len(entries)}):"
            yield from (f"  {entry.at}: {entry.why}" for entry in entries)


def _read_models(
    data: dict[str, Any], problems: ImportProblems, variables: Variables, lost: list[_LostModel]
) -> dict[str, _Group]:
    """Read ``model_list``: the deployments of each name. Those that cannot be deployments are added to ``lost``."""
    reader = DeploymentReader(problems, variables)
    groups: dict[str, _Group] = {}
    if not data.get("model_list"):
        problems.refuse(("model_list",), "is needed: a list of models")
    for index, entry in enumerate(problems.items(data, "model_list")):
        path: KeyPath = ("model_list", index)
        name, params, info = _read_entry(entry, path, problems)
        if params is None:
            continue
        problems.leave_rest(entry, path, {"model_name", "litellm_params", "model_info"})
        _leave_info(info, (*path, "model_info"), problems)
        if fits(LABEL, name) is None:
            problems.leave((*path, "model_name"), "is not a valid name of a model here", Severity.BREAKS)
        elif (row := reader.read(params, info, (*path, "litellm_params"))) is not None:
            groups.setdefault(name, []).append(_GroupMember(row=row, params=params, path=path))
        else:  # the reader has just said why
            lost.append(_LostModel(name=name, left=problems.not_carried[-1]))
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


def _leave_info(info: dict[str, Any], path: KeyPath, problems: ImportProblems) -> None:
    """Record what ``model_info`` says. It describes, except for kinds of models that are not relayed."""
    mode = info.get("mode")
    if mode in _NOT_RELAYED:
        problems.leave((*path, "mode"), _NOT_RELAYED[mode], Severity.BREAKS)
    carried = {"input_cost_per_token", "output_cost_per_token", *(["mode"] if mode in _NOT_RELAYED else [])}
    problems.leave_rest(info, path, carried, unknown=(Severity.IGNORED, "it only describes the model"))


def _build_routes(
    groups: dict[str, _Group], settings: RouterSettings, problems: ImportProblems, lost: list[_LostModel]
) -> list[_Route]:
    """Return the routes, and say what happens to requests for the models that are lost."""
    named = dict(_name_groups(groups, problems, lost))
    routes = {name: {"model": name, "deployments": _weigh(group, problems)} for name, group in named.items()}
    targets = dict(_add_aliases(routes, settings.aliases, problems, lost))
    for model in lost:
        model.tell_consequence(routes)
    for kind, table in settings.fallbacks.items():
        _check_fallbacks(table, routes, problems)
        for name, route in routes.items():
            fallbacks = table.get(name) or table.get(targets.get(name, name)) or table.get(EVERY, [])
            if kept := [
                model
                for model in dict.fromkeys(target.model for target in fallbacks)
                if model in routes and model != name
            ]:
                route[kind] = kept
    return list(routes.values())


def _name_groups(
    groups: dict[str, _Group], problems: ImportProblems, lost: list[_LostModel]
) -> Iterator[tuple[str, _Group]]:
    """Yield the groups with the names of their routes. One pattern, such as ``openai/*``, can be the route ``*``."""
    rest = ANY_MODEL in groups
    for name, group in groups.items():
        if "*" not in name or name == ANY_MODEL:
            yield name, group
            continue
        here = (*group[0].path, "model_name")
        if rest or not name.endswith("/*") or "*" in name[:-1]:
            why = "a route is for one model, or for all that no other route names"
            lost.append(_LostModel(name=name, left=problems.leave(here, why, Severity.BREAKS)))
            continue
        rest = True
        problems.leave(
            here,
            f"becomes the route for all other models: clients ask for them without {name[:-1]}, and a name that no "
            f"route has, also a misspelt one, is sent to {group[0].row['name']}",
            Severity.BREAKS,
        )
        yield ANY_MODEL, group


def _weigh(group: _Group, problems: ImportProblems) -> list[dict[str, Any]]:
    """Weight deployments by the parameter that all of them have.

    LiteLLM takes the one that the first has, and gives those without it no traffic while the first works. Here they get
    the smallest weight of the others. Where deployments have different parameters, all get the same weight.
    """
    names = [member.row["name"] for member in group]
    used = [key for key in _WEIGHTS if any(member.params.get(key) is not None for member in group)]
    shared = [key for key in used if all(member.params.get(key) is not None for member in group)]
    if len(group) == 1 or not used:
        return [{"name": name} for name in names]
    by = (shared or used)[0]
    here = (*group[0].path, "litellm_params")
    weights = [fits(WEIGHT, value) for member in group if (value := member.params.get(by)) is not None]
    if None in weights or not any(weights) or (not shared and len(used) > 1):
        why = f"{' and '.join(used)} of these deployments give no common weights: all have the same weight"
        problems.leave(here, why)
        return [{"name": name} for name in names]
    least = min(weight for weight in weights if weight)
    if not shared:
        without = ", ".join(name for name, member in zip(names, group, strict=True) if member.params.get(by) is None)
        problems.leave(here, f"{without}: without {by}, so with the smallest of the others, {plain(least)}")
    final_weights = (fits(WEIGHT, member.params.get(by, least)) for member in group)
    return [{"name": name, "weight": plain(weight or 0.0)} for name, weight in zip(names, final_weights, strict=True)]


def _add_aliases(
    routes: dict[str, _Route], aliases: dict[str, NamedModel], problems: ImportProblems, lost: list[_LostModel]
) -> Iterator[tuple[str, str]]:
    """Add a route for each alias; yield the alias and its model."""
    declared = set(routes)
    for alias, target in aliases.items():
        if target.model not in declared:
            left = problems.leave(target.path, "is an alias of a model that was not carried over", Severity.BREAKS)
            lost.append(_LostModel(name=alias, left=left))
        elif alias in routes:
            problems.leave(target.path, "is also the name of a model; the model is used")
        elif fits(LABEL, alias) is None or "*" in alias:
            problems.leave(target.path, "the name is not valid for a model here", Severity.BREAKS)
        else:
            routes[alias] = {
                "model": alias,
                "deployments": [dict(member) for member in routes[target.model]["deployments"]],
            }
            yield alias, target.model


def _check_fallbacks(table: dict[str, list[NamedModel]], routes: dict[str, _Route], problems: ImportProblems) -> None:
    for model, targets in table.items():
        for target in targets:
            if model not in routes and model != EVERY:
                problems.leave(target.path, "is for a model that was not carried over", Severity.IGNORED)
            elif target.model not in routes:
                failing = "any model" if model == EVERY else model
                problems.leave(
                    target.path, f"names a model that was not carried over: where {failing} fails, it is not asked"
                )
            elif target.model == model:
                problems.leave(target.path, "a route cannot be its own fallback", Severity.IGNORED)


def _judge_variables(not_carried: list[Left], written: str) -> None:
    """Raise the severity of the file's own variables that the new configuration needs."""
    for left in not_carried:
        section, *rest = left.problem.path
        if section == "environment_variables" and rest and f"${{{rest[0]}}}" in written:
            left.severity = Severity.BREAKS


def _order(left: Left) -> tuple[int, int]:
    return list(Severity).index(left.severity), left.problem.line or 0


def _not_carried(left: Left, source: str) -> NotCarried:
    problem = left.problem
    at = f"{source}:{problem.line}: {format_path(problem.path)}"
    return NotCarried(at=at, why=problem.message, severity=left.severity)


def _write(content: dict[str, Any], source: str, left: tuple[NotCarried, ...]) -> str:
    lines = [f"Made from {source} by biasmeter import-config.", *summary(left)]
    printable = ("".join(character if character.isprintable() else "?" for character in line) for line in lines)
    comment = "".join(f"# {line}\n" for line in printable)
    return comment + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=4096)
