"""Make judges from their names, with the registry of kinds and the endpoints of the configuration.

A kind registers a factory with ``@judge_kind``; ``judge_kinds`` imports every module of the package once.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import httpx2

from auditor import judges
from auditor.access import GatewayAccess, pinned_model
from auditor.config import Config
from auditor.config.audits import NliModel
from auditor.config.network import plain_headers
from auditor.errors import ConfigError, UsageError
from auditor.judges.endpoint import DEFAULT_CONCURRENCY, JudgeEndpoint, open_client
from auditor.judges.judge import Judge
from auditor.judges.rubric import STATEMENT, Rubric, find_rubric

#: A judge writes one sentence. With a deployment's general limit (900 s by default), one hung call would block a run.
_PATIENCE: Final = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeSettings:
    """The arguments of a factory: the rubric; for a judge at an endpoint its address and connection pool.

    ``name`` and ``nli`` are those of a sentence-pair model.
    """

    rubric: Rubric
    endpoint: JudgeEndpoint | None = None
    client: httpx2.AsyncClient | None = None
    name: str | None = None
    nli: NliModel | None = None


JudgeFactory = Callable[[JudgeSettings], Judge]
_Factory = TypeVar("_Factory", bound=JudgeFactory)

_kinds: dict[str, JudgeFactory] = {}

#: The kind of judges that the configuration defines by their deployment.
CONFIGURED_KIND: Final = "llm"
#: The kind of judges that the configuration defines by a sentence-pair model.
NLI_KIND: Final = "nli"


def judge_kind(name: str) -> Callable[[_Factory], _Factory]:
    """Register a factory under a name that is not in use."""

    def register(factory: _Factory) -> _Factory:
        if name in _kinds:
            raise ValueError(f"two kinds of judge are called {name!r}")
        _kinds[name] = factory
        return factory

    return register


def judge_kinds() -> Mapping[str, JudgeFactory]:
    """Return all kinds, after importing every module of this package."""
    for module in pkgutil.iter_modules(judges.__path__, "auditor.judges."):
        importlib.import_module(module.name)
    return dict(sorted(_kinds.items()))


def load_judges(
    names: Sequence[str],
    config: Config | None = None,
    *,
    rubric: str = STATEMENT,
    client: httpx2.AsyncClient | None = None,
    through: GatewayAccess | None = None,
) -> tuple[Judge, ...]:
    """Make the named judges, in the given order.

    Parameters
    ----------
    names
        ``lexicon`` needs no configuration; any other name must be in it. A name must not be repeated, because
        that judge would have two votes.
    config
        The configuration of judges and deployments.
    rubric
        The question to the judges.
    client
        The connection pool that they share; opened here if absent, closed by the panel.
    through
        The gateway, if judges are asked through it (marked as audit traffic) and not directly.

    Raises
    ------
    UsageError
        For an unknown or repeated name; the message lists the known ones.
    """
    question = find_rubric(rubric)
    kinds = judge_kinds()
    plain = sorted(set(kinds) - {CONFIGURED_KIND, NLI_KIND})
    configured = [judge.name for judge in config.judges if judge.name not in plain] if config else []
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"judge {name!r} is named twice")
        if name not in plain and name not in configured:
            raise UsageError(f"unknown judge {name!r}; known: {', '.join([*plain, *configured])}")
    pairs = {judge.name: judge.nli for judge in config.judges if judge.nli} if config else {}
    endpoints = {
        name: find_endpoint(config, name, through) for name in names if config and name not in (*plain, *pairs)
    }
    shared = (
        (client or open_client(sum(endpoint.concurrency for endpoint in endpoints.values()))) if endpoints else None
    )
    return tuple(
        kinds[CONFIGURED_KIND if name in endpoints else NLI_KIND if name in pairs else name](
            JudgeSettings(rubric=question, endpoint=endpoints.get(name), client=shared, name=name, nli=pairs.get(name))
        )
        for name in names
    )


def find_endpoint(config: Config, name: str, through: GatewayAccess | None = None) -> JudgeEndpoint:
    """Return the endpoint of the configured judge with that name: its deployment, or the gateway in ``through``.

    Raises
    ------
    ConfigError
        When the judge, its deployment, or that deployment's model is missing.
    """
    judge = next((judge for judge in config.judges if judge.name == name), None)
    if judge is None:
        raise ConfigError(f"there is no judge {name!r}")
    return reach_deployment(config, judge.deployment, through, name=name)


def reach_deployment(
    config: Config, wanted: str | None, through: GatewayAccess | None = None, *, name: str, role: str = "judge"
) -> JudgeEndpoint:
    """Return the endpoint of the deployment ``wanted``; ``name`` and ``role`` identify its user in error messages.

    Raises
    ------
    ConfigError
        When the deployment or its model is missing.
    """
    deployment = next((candidate for candidate in config.deployments if candidate.name == wanted), None)
    if deployment is None:
        raise ConfigError(f"{role} {name!r}: there is no deployment {wanted!r}")
    if deployment.model is None:
        raise ConfigError(f"{role} {name!r}: deployment {deployment.name!r} names no model to ask for")
    if through is not None:
        # Only the gateway has the deployment's key, and it writes the deployment's model into the request.
        base_url, key = through.url, through.key
        model = pinned_model(config, deployment)
        extra = {} if model == deployment.model else {"model": model}
        headers = {"x-biasmeter-origin": "judge", "x-biasmeter-deployment": deployment.name}
    else:
        base_url, headers, extra = deployment.base_url, plain_headers(deployment.headers), {}
        key = deployment.api_key.get_secret_value() if deployment.api_key else ""
    return JudgeEndpoint(
        name=name,
        base_url=base_url,
        model=deployment.model,
        api_key=key,
        headers=headers,
        extra=extra,
        concurrency=deployment.concurrency or DEFAULT_CONCURRENCY,
        timeout=min(config.timeouts_for(deployment).total, _PATIENCE),
        role=role,
    )
