"""Collect what is wrong with a LiteLLM file, and what cannot be carried over, by its consequence."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from auditor.config.problems import KeyPath, Problem
from auditor.config.yaml_source import Places


class Severity(StrEnum):
    """The consequence of a setting that is not carried over, the worst first."""

    BREAKS = "breaks"  #: requests fail, or reach another deployment, until somebody acts
    CHANGES = "changes"  #: requests are answered, but not as before
    IGNORED = "ignored"  #: nothing changes for requests


_BREAKS, _CHANGES, _IGNORED = Severity
_COOLDOWN: Final = "a failing deployment is not asked after 5 failures in a row, for 10 s; this cannot be configured"
_UNCHANGED: Final = "requests are forwarded unchanged; a deployment that does not know a parameter answers with 400"
_NOTHING_ADDED: Final = "requests are forwarded unchanged: the application has to send it"
_BUDGETS: Final = "budgets and limits belong to client keys: biasmeter key create --budget, --rpm, --tpm"
_OBSERVED: Final = "captured exchanges go to the store, metrics to /metrics"
_DATABASE_OF_STORE: Final = "the store has a database of its own: store.url, or the embedded one"
_NOT_CACHED: Final = "answers are not cached: each request is sent, and paid"
_LOGS: Final = "the log has one line for each event that needs attention, and none for a request"
_ONE_HOST: Final = "limits per minute hold on each host; nothing is shared through Redis"
#: Consequences of settings that are not carried over, by their name, in any section.
_REASONS: Final = {
    "master_key": (_BREAKS, "LiteLLM's keys are unknown here: make one for each application with biasmeter key create"),
    "custom_auth": (_BREAKS, "your code is not called: make a key for each application with biasmeter key create"),
    "azure_ad_token": (_BREAKS, "a deployment needs a key, not a token that expires"),
    "include": (_BREAKS, "included files are not read, so their models are missing: import each of them"),
    "mock_response": (_BREAKS, "there are no invented answers: requests are sent, and paid"),
    "pass_through_endpoints": (
        _BREAKS,
        "paths are not mapped: a POST below /v1/ reaches the same path of a deployment, any other path gets 404",
    ),
    "allowed_fails": (_CHANGES, _COOLDOWN),
    "cooldown_time": (_CHANGES, _COOLDOWN),
    "allowed_fails_policy": (_CHANGES, _COOLDOWN),
    "retry_policy": (_CHANGES, "retries depend on the answer's status in one way for all routes"),
    "retry_after": (_CHANGES, "a retry waits 0.5 s to 8 s, or as long as the deployment's Retry-After says"),
    "routing_strategy_args": (_CHANGES, "a route's deployments are chosen by weight and by what they have in flight"),
    "drop_params": (_CHANGES, _UNCHANGED),
    "modify_params": (_CHANGES, _UNCHANGED),
    "additional_drop_params": (_CHANGES, _UNCHANGED),
    "temperature": (_CHANGES, _NOTHING_ADDED),
    "top_p": (_CHANGES, _NOTHING_ADDED),
    "max_tokens": (_CHANGES, _NOTHING_ADDED),
    "extra_body": (_CHANGES, _NOTHING_ADDED),
    "max_retries": (_CHANGES, "gateway.retries holds for all deployments"),
    "cache": (_CHANGES, _NOT_CACHED),
    "cache_params": (_CHANGES, _NOT_CACHED),
    "max_budget": (_CHANGES, _BUDGETS),
    "budget_duration": (_CHANGES, _BUDGETS),
    "max_user_budget": (_CHANGES, _BUDGETS),
    "global_max_parallel_requests": (_CHANGES, "concurrency is limited for each deployment: concurrency"),
    "redis_host": (_CHANGES, _ONE_HOST),
    "redis_port": (_CHANGES, _ONE_HOST),
    "redis_password": (_CHANGES, _ONE_HOST),
    "redis_url": (_CHANGES, _ONE_HOST),
    "forward_client_headers_to_llm_api": (_CHANGES, "gateway.forward_headers names the headers that are passed on"),
    "tags": (_CHANGES, "a request is not routed by tags; make a route for each, or a key with --allow pin"),
    "success_callback": (_IGNORED, _OBSERVED),
    "failure_callback": (_IGNORED, _OBSERVED),
    "service_callbacks": (_IGNORED, _OBSERVED),
    "database_url": (_IGNORED, _DATABASE_OF_STORE),
    "database_connection_pool_limit": (_IGNORED, _DATABASE_OF_STORE),
    "store_model_in_db": (_BREAKS, "models that LiteLLM keeps in its database are not in its file: add them by hand"),
    "store_prompts_in_spend_logs": (_IGNORED, "a route's capture says what is kept: off, hashed or full"),
    "alerting": (_IGNORED, "Prometheus alerts, with the rules of biasmeter deploy-files"),
    "set_verbose": (_IGNORED, _LOGS),
    "json_logs": (_IGNORED, _LOGS),
    "telemetry": (_IGNORED, "nothing is reported to anybody"),
    "background_health_checks": (_IGNORED, "deployments are judged by the requests that they answer"),
    "health_check_interval": (_IGNORED, "deployments are judged by the requests that they answer"),
}  # fmt: skip
_NO_COUNTERPART: Final = (_CHANGES, "there is no such setting here")


@dataclass(kw_only=True, slots=True)
class Left:
    """A setting that is not carried over."""

    problem: Problem
    severity: Severity


@dataclass(slots=True)
class ImportProblems:
    """The problems and the settings not carried over, in the order of reading."""

    places: Places
    wrong: list[Problem] = field(default_factory=list)
    not_carried: list[Left] = field(default_factory=list)

    def refuse(self, path: KeyPath, message: str) -> None:
        """Record an error, which prevents the conversion."""
        self.wrong.append(Problem(line=self.places.line(path), path=path, message=message))

    def leave(self, path: KeyPath, why: str, severity: Severity = Severity.CHANGES) -> Left:
        """Record a setting that is not carried over; ``why`` must not contain a value that could be secret."""
        left = Left(problem=Problem(line=self.places.line(path), path=path, message=why), severity=severity)
        self.not_carried.append(left)
        return left

    def leave_rest(
        self,
        section: Mapping[str, Any],
        path: KeyPath,
        carried: Collection[str] = (),
        unknown: tuple[Severity, str] = _NO_COUNTERPART,
    ) -> None:
        """Record every setting of a section that is not carried over, except empty ones."""
        for key, value in section.items():
            if key not in carried and value is not None:
                severity, why = _REASONS.get(key, unknown)
                self.leave((*path, key), why, severity)

    def mapping(self, holder: Mapping[str, Any], key: str, path: KeyPath = ()) -> dict[str, Any]:
        """Return the mapping at a key; an absent one is empty, any other value is an error."""
        value = holder.get(key)
        if value is not None and not isinstance(value, dict):
            self.refuse((*path, key), "must be a mapping")
        return value if isinstance(value, dict) else {}

    def items(self, holder: Mapping[str, Any], key: str, path: KeyPath = ()) -> list[Any]:
        """Return the list at a key; an absent one is empty, any other value is an error."""
        value = holder.get(key)
        if value is not None and not isinstance(value, list):
            self.refuse((*path, key), "must be a list")
        return value if isinstance(value, list) else []
