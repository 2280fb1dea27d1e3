"""Collect what is wrong with a LiteLLM file, and what cannot be carried over."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.config.problems import KeyPath, Problem
from auditor.config.yaml_source import Places

#: Reasons why settings of these names are not carried over, in any section.
_REASONS: Final = {
    "allowed_fails": "when and for how long a failing deployment is not asked cannot be configured",
    "cooldown_time": "when and for how long a failing deployment is not asked cannot be configured",
    "allowed_fails_policy": "when and for how long a failing deployment is not asked cannot be configured",
    "retry_policy": "retries depend on the answer's status in one way for all routes",
    "routing_strategy_args": "a route's deployments are chosen by weight and by what they have in flight",
    "drop_params": "requests are forwarded unchanged",
    "modify_params": "requests are forwarded unchanged",
    "additional_drop_params": "requests are forwarded unchanged",
    "temperature": "requests are forwarded unchanged: no parameter is added",
    "top_p": "requests are forwarded unchanged: no parameter is added",
    "max_tokens": "requests are forwarded unchanged: no parameter is added",
    "extra_body": "requests are forwarded unchanged: no parameter is added",
    "max_retries": "gateway.retries holds for all deployments",
    "callbacks": "captured exchanges go to the store, metrics to /metrics",
    "success_callback": "captured exchanges go to the store, metrics to /metrics",
    "failure_callback": "captured exchanges go to the store, metrics to /metrics",
    "service_callbacks": "captured exchanges go to the store, metrics to /metrics",
    "cache": "answers are not cached",
    "cache_params": "answers are not cached",
    "ssl_verify": "certificates are always checked; a deployment's ca_file names an authority of your own",
    "master_key": "client keys are made with: biasmeter key create",
    "database_url": "the store has a database of its own: store.url, or the embedded one",
    "forward_client_headers_to_llm_api": "gateway.forward_headers names the headers that are passed on",
    "azure_ad_token": "a deployment needs a key, not a token that expires",
    "include": "included files are not read: import each of them",
}
_NO_COUNTERPART: Final = "there is no such setting here"


@dataclass(slots=True)
class ImportProblems:
    """The problems and the settings not carried over, in the order of reading."""

    places: Places
    wrong: list[Problem] = field(default_factory=list)
    not_carried: list[Problem] = field(default_factory=list)

    def refuse(self, path: KeyPath, message: str) -> None:
        """Record an error, which prevents the conversion."""
        self.wrong.append(Problem(line=self.places.line(path), path=path, message=message))

    def leave(self, path: KeyPath, why: str) -> None:
        """Record a setting that is not carried over; ``why`` must not contain a value that could be secret."""
        self.not_carried.append(Problem(line=self.places.line(path), path=path, message=why))

    def leave_rest(self, section: Mapping[str, Any], path: KeyPath, carried: Collection[str] = ()) -> None:
        """Record every setting of a section that is not carried over, except empty ones."""
        for key, value in section.items():
            if key not in carried and value is not None:
                self.leave((*path, key), _REASONS.get(key, _NO_COUNTERPART))

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
