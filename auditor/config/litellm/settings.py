"""Read the sections of a LiteLLM file other than ``model_list``: timeouts, retries, fallbacks and aliases.

No guardrail can be carried over: each is named, with what is no longer checked without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.config.litellm.deployments import UNVERIFIED
from auditor.config.litellm.problems import ImportProblems, Severity
from auditor.config.litellm.values import RETRIES, SECONDS, fits, plain
from auditor.config.problems import KeyPath
from auditor.config.values import quote

SECTIONS: Final = (
    "model_list", "router_settings", "litellm_settings", "general_settings", "environment_variables", "guardrails",
)  # fmt: skip
#: Keys of a route by LiteLLM's kinds of fallbacks.
KINDS: Final = {
    "fallbacks": "fallbacks",
    "context_window_fallbacks": "context_window_fallbacks",
    "content_policy_fallbacks": "content_filter_fallbacks",
}
#: The model with the fallbacks of every route that has none of its own.
EVERY: Final = "*"

_MOST_RETRIES: Final = 10
_TIMEOUTS: Final = {"timeout": "total", "request_timeout": "total", "stream_timeout": "first_token"}


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedModel:
    """A model that a fallback or an alias names, and the place of the name."""

    model: str
    path: KeyPath


@dataclass(slots=True)
class RouterSettings:
    """The ``gateway`` section, fallbacks by kind and model, and aliases."""

    gateway: dict[str, Any] = field(default_factory=dict)
    fallbacks: dict[str, dict[str, list[NamedModel]]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS.values()}
    )
    aliases: dict[str, NamedModel] = field(default_factory=dict)


def read_settings(data: dict[str, Any], problems: ImportProblems) -> RouterSettings:
    """Read all sections; if two have the same setting, the router's counts."""
    settings = RouterSettings()
    for section in ("router_settings", "litellm_settings"):
        values = problems.mapping(data, section)
        _read_retries(values, (section,), settings, problems)
        _read_timeouts(values, (section,), settings, problems)
        _read_fallbacks(values, (section,), settings, problems)
        carried = {"num_retries", *_TIMEOUTS, *KINDS, "default_fallbacks"}
        if section == "router_settings":
            _read_aliases(values, settings, problems)
            _read_strategy(values, problems)
            carried |= {"model_group_alias", "routing_strategy"}
        if section == "litellm_settings":
            carried |= {"guardrails", "callbacks", "ssl_verify"}
            if str(values.get("ssl_verify")).lower() == "false":
                problems.leave((section, "ssl_verify"), UNVERIFIED, Severity.BREAKS)
        problems.leave_rest(values, (section,), carried)
    leave_guardrails(data, problems)
    problems.leave_rest(problems.mapping(data, "general_settings"), ("general_settings",))
    for name in problems.mapping(data, "environment_variables"):
        problems.leave(
            ("environment_variables", name), "variables are set in the environment, not in the file", Severity.IGNORED
        )
    problems.leave_rest(data, (), SECTIONS)
    return settings


def _read_retries(values: dict[str, Any], path: KeyPath, settings: RouterSettings, problems: ImportProblems) -> None:
    value = values.get("num_retries")
    here = (*path, "num_retries")
    if value is None:
        return
    retries = fits(RETRIES, value)
    if retries is None:
        problems.leave(here, "is not a number of retries")
    elif "retries" in settings.gateway:
        problems.leave(here, "router_settings has it too, and is used", Severity.IGNORED)
    else:
        settings.gateway["retries"] = min(retries, _MOST_RETRIES)
        if retries > _MOST_RETRIES:
            problems.leave(here, f"there are at most {_MOST_RETRIES} retries")


def _read_timeouts(values: dict[str, Any], path: KeyPath, settings: RouterSettings, problems: ImportProblems) -> None:
    for key, name in _TIMEOUTS.items():
        if values.get(key) is None:
            continue
        seconds = fits(SECONDS, values[key])
        timeouts = settings.gateway.setdefault("timeouts", {})
        if seconds is None:
            problems.leave((*path, key), "is not a number of seconds")
        elif name in timeouts:
            problems.leave((*path, key), f"timeouts.{name} is given already; the first one is used", Severity.IGNORED)
        else:
            timeouts[name] = plain(seconds)


def _read_fallbacks(values: dict[str, Any], path: KeyPath, settings: RouterSettings, problems: ImportProblems) -> None:
    for theirs, ours in KINDS.items():
        for index, entry in enumerate(problems.items(values, theirs, path)):
            here = (*path, theirs, index)
            if not isinstance(entry, dict):
                problems.refuse(here, "must be a mapping of a model to the models that replace it")
                continue
            for model in entry:
                targets = list(_read_targets(entry, model, here, problems))
                _add_fallbacks(settings.fallbacks[ours], model, targets, (*here, model), problems)
    if values.get("default_fallbacks") is not None:
        targets = list(_read_targets(values, "default_fallbacks", path, problems))
        _add_fallbacks(settings.fallbacks["fallbacks"], EVERY, targets, (*path, "default_fallbacks"), problems)


def _read_targets(holder: dict[str, Any], key: str, path: KeyPath, problems: ImportProblems) -> Iterator[NamedModel]:
    for index, model in enumerate(problems.items(holder, key, path)):
        here = (*path, key, index)
        if isinstance(model, str):
            yield NamedModel(model=model, path=here)
        else:
            problems.leave(here, "a fallback is the name of a route; it gets the request unchanged")


def _add_fallbacks(
    known: dict[str, list[NamedModel]], model: str, targets: list[NamedModel], path: KeyPath, problems: ImportProblems
) -> None:
    if model in known:
        problems.leave(path, "has fallbacks of this kind already; the first ones are used")
    else:
        known[model] = targets


def _read_aliases(values: dict[str, Any], settings: RouterSettings, problems: ImportProblems) -> None:
    path: KeyPath = ("router_settings", "model_group_alias")
    for alias, value in problems.mapping(values, "model_group_alias", path[:1]).items():
        model = value.get("model") if isinstance(value, dict) else value
        if not isinstance(model, str):
            problems.refuse((*path, alias), "must be the name of a model")
            continue
        settings.aliases[alias] = NamedModel(model=model, path=(*path, alias))
        if isinstance(value, dict):
            problems.leave_rest(value, (*path, alias), {"model"})


def _read_strategy(values: dict[str, Any], problems: ImportProblems) -> None:
    strategy = values.get("routing_strategy")
    if strategy not in {None, "simple-shuffle"}:
        words = f"{quote(strategy)}: " if isinstance(strategy, str) else ""
        why = f"{words}a route's deployments are chosen by weight and by what they have in flight"
        problems.leave(("router_settings", "routing_strategy"), why)


#: What is no longer done, by LiteLLM's ``mode``.
_LOST: Final = {
    "pre_call": "prompts reach the deployment unchecked and unmasked",
    "during_call": "prompts are answered although it would have stopped them",
    "post_call": "answers reach the client unchecked and unmasked",
    "logging_only": "copies are masked by gateway.redact alone",
}
_LOST_ANY: Final = "prompts and answers pass unchecked and unmasked"
#: Callbacks of LiteLLM that check or change requests.
_CALLBACKS: Final = frozenset(
    {
        "aporia_prompt_injection", "azure_content_safety", "banned_keywords", "blocked_user_check",
        "detect_prompt_injection", "google_text_moderation", "hide_secrets", "lakera_prompt_injection",
        "llamaguard_moderations", "llmguard_moderations", "openai_moderations", "presidio",
    }
)  # fmt: skip
_OBSERVES: Final = "captured exchanges go to the store, metrics to /metrics"


def leave_guardrails(data: dict[str, Any], problems: ImportProblems) -> None:
    """Record the guardrails of the section ``guardrails``, and those of ``litellm_settings``."""
    for index, entry in enumerate(problems.items(data, "guardrails")):
        path: KeyPath = ("guardrails", index)
        if not isinstance(entry, dict):
            problems.refuse(path, "must be a mapping with guardrail_name and litellm_params")
            continue
        params = problems.mapping(entry, "litellm_params", path)
        problems.leave(path, f"guardrail {_name(entry.get('guardrail_name'))} is lost: {_consequence(params)}")
    settings = problems.mapping(data, "litellm_settings")
    entries = settings.get("guardrails")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        for name in entry if isinstance(entry, dict) else ():
            problems.leave(("litellm_settings", "guardrails", index), f"guardrail {_name(name)} is lost: {_LOST_ANY}")
    for index, name in _callbacks(settings):
        if name in _CALLBACKS:
            problems.leave(("litellm_settings", "callbacks", index), f"{_name(name)} is lost: {_LOST_ANY}")
        else:
            problems.leave(("litellm_settings", "callbacks", index), _OBSERVES, Severity.IGNORED)


def _callbacks(settings: dict[str, Any]) -> Iterator[tuple[int, object]]:
    callbacks = settings.get("callbacks")
    if callbacks is not None:
        yield from enumerate(callbacks if isinstance(callbacks, list) else [callbacks])


def _consequence(params: dict[str, Any]) -> str:
    mode = params.get("mode")
    modes = mode if isinstance(mode, list) else [mode]
    lost = "; ".join(_LOST[entry] for entry in modes if isinstance(entry, str) and entry in _LOST) or _LOST_ANY
    always = str(params.get("default_on")).lower() == "true"
    return lost if always else f"{lost}, where a request or a key asks for it"


def _name(name: object) -> str:
    return quote(name) if isinstance(name, str) else "without a name"
