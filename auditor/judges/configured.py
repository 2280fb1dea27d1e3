"""From the configuration to a judge's endpoint: the only place here that knows the shape of ``auditor.config``."""

from typing import Final

from auditor.access import GatewayAccess, routed_model
from auditor.config import Config
from auditor.errors import ConfigError
from auditor.judges.endpoint import DEFAULT_CONCURRENCY, JudgeEndpoint

#: A judge writes one sentence: a deployment's general limit (900 s by default) would let one hung call hold a run.
_PATIENCE: Final = 120.0


def find_endpoint(config: Config, name: str, through: GatewayAccess | None = None) -> JudgeEndpoint:
    """Return where the configured judge of that name is reached: at its deployment, or ``through`` the gateway.

    Raises
    ------
    ConfigError
        When the judge, its deployment, or that deployment's model is not there.
    """
    judge = next((judge for judge in config.judges if judge.name == name), None)
    if judge is None:
        raise ConfigError(f"there is no judge {name!r}")
    return reach_deployment(config, judge.deployment, through, name=name)


def reach_deployment(
    config: Config, wanted: str | None, through: GatewayAccess | None = None, *, name: str, role: str = "judge"
) -> JudgeEndpoint:
    """Return where the deployment ``wanted`` is reached for whoever is called ``name`` and does what ``role`` says.

    Raises
    ------
    ConfigError
        When the deployment, or its model, is not there.
    """
    deployment = next((one for one in config.deployments if one.name == wanted), None)
    if deployment is None:
        raise ConfigError(f"{role} {name!r}: there is no deployment {wanted!r}")
    if deployment.model is None:
        raise ConfigError(f"{role} {name!r}: deployment {deployment.name!r} names no model to ask for")
    if through is not None:
        # Only the gateway holds the deployment's key, and it puts the deployment's own model into the request.
        base_url, key = through.url, through.key
        routed = routed_model(config, deployment)
        extra = {"model": routed} if routed not in {None, deployment.model} else {}
        headers = {"x-tiltmeter-origin": "judge", "x-tiltmeter-deployment": deployment.name}
    else:
        base_url, headers, extra = deployment.base_url, dict(deployment.headers), {}
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
