"""Convert LiteLLM's proxy configuration into a configuration of Biasmeter.

Settings that have no counterpart are listed with their lines. Secrets are never copied: keys in the file are replaced
by variables, and the list names those to set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from auditor.config.litellm.deployments import PROVIDERS, DeploymentReader
from auditor.config.litellm.problems import ImportProblems, Left, Severity
from auditor.config.litellm.routes import Group, GroupMember, LostModel, build_routes
from auditor.config.litellm.settings import read_settings
from auditor.config.litellm.values import LABEL, Variables, fits
from auditor.config.problems import KeyPath, Problem, format_path, to_error
from auditor.config.yaml_source import compose, parse
from auditor.errors import ConfigError

__all__ = ["Imported", "NotCarried", "Severity", "convert"]

#: Keys of ``litellm_params`` that must be text.
_TEXTS: Final = ("model", "custom_llm_provider", "api_base", "base_url", "api_key", "api_version", "organization")


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


def summary(not_carried: Sequence[NotCarried]) -> Iterator[str]:
    """Yield the lines of a list of settings that are not carried over, under a heading for each severity."""
    for severity, heading in _HEADINGS.items():
        entries = [entry for entry in not_carried if entry.severity is severity]
        if entries:
            yield f"{heading.capitalize()} ({len(entries)}):"
            yield from (f"  {entry.at}: {entry.why}" for entry in entries)


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
    lost: list[LostModel] = []
    variables = Variables(text, [provider.key for provider in PROVIDERS.values() if provider.key])
    groups = _read_models(document.data, problems, variables, lost)
    settings = read_settings(document.data, problems)
    if problems.wrong:
        raise to_error(problems.wrong, source)
    routes = build_routes(groups, settings, problems, lost)
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


def _order(left: Left) -> tuple[int, int]:
    return list(Severity).index(left.severity), left.problem.line or 0


def _not_carried(left: Left, source: str) -> NotCarried:
    problem = left.problem
    at = f"{source}:{problem.line}: {format_path(problem.path)}"
    return NotCarried(at=at, why=problem.message, severity=left.severity)


def _judge_variables(not_carried: list[Left], written: str) -> None:
    """Raise the severity of the file's own variables that the new configuration needs."""
    for left in not_carried:
        section, *rest = left.problem.path
        if section == "environment_variables" and rest and f"${{{rest[0]}}}" in written:
            left.severity = Severity.BREAKS


def _read_models(
    data: dict[str, Any], problems: ImportProblems, variables: Variables, lost: list[LostModel]
) -> dict[str, Group]:
    """Read ``model_list``: the deployments of each name. Those that cannot be deployments are added to ``lost``."""
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
        _leave_info(info, (*path, "model_info"), problems)
        if fits(LABEL, name) is None:
            problems.leave((*path, "model_name"), "is not a valid name of a model here", Severity.BREAKS)
        elif (row := reader.read(params, info, (*path, "litellm_params"))) is not None:
            groups.setdefault(name, []).append(GroupMember(row=row, params=params, path=path))
        else:  # the reader has just said why
            lost.append(LostModel(name=name, left=problems.not_carried[-1]))
    return groups


def _leave_info(info: dict[str, Any], path: KeyPath, problems: ImportProblems) -> None:
    """Record what ``model_info`` says. It describes, except for kinds of models that are not relayed."""
    mode = info.get("mode")
    if mode in _NOT_RELAYED:
        problems.leave((*path, "mode"), _NOT_RELAYED[mode], Severity.BREAKS)
    carried = {"input_cost_per_token", "output_cost_per_token", *(["mode"] if mode in _NOT_RELAYED else [])}
    problems.leave_rest(info, path, carried, unknown=(Severity.IGNORED, "it only describes the model"))


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
    lines = [f"Made from {source} by biasmeter import-config.", *summary(left)]
    printable = ("".join(character if character.isprintable() else "?" for character in line) for line in lines)
    comment = "".join(f"# {line}\n" for line in printable)
    return comment + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=4096)
