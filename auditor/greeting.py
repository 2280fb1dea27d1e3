"""What ``tiltmeter up`` says once it runs: who judges, what a first audit would take, that nothing was asked yet."""

from collections.abc import Iterator

from auditor.config import Config, Deployment
from auditor.errors import UsageError
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.estimate import Estimate, estimate, forecast
from auditor.probes.plan import Asked, make_plan
from auditor.probes.session import asked_model

_LEXICON = "lexicon"


def greeting(config: Config) -> Iterator[str]:
    """Give the lines."""
    if set(config.panel.judges) <= {_LEXICON}:
        yield (
            "NOTE: no judges are configured. Elaborations are read by the built-in lexicon, a coarse word list that "
            "misses irony, qualification and much else (docs/judges.md). Configure judges before you rely on a number."
        )
    judging = {judge.deployment for judge in config.judges}
    audited = [deployment for deployment in config.deployments if deployment.name not in judging]
    unnamed = [deployment.name for deployment in audited if not _can_be_asked(config, deployment)]
    if unnamed:
        yield f"To probe {', '.join(unnamed)}, say in the configuration which model to ask for (deployments[].model)."
    planned = make_plan(Asked(design=Design.SENTINEL, statements=shipped_pool(), seed=config.seed))
    for one in estimate(planned, forecast(planned), audited):
        yield f"A first audit of {one.deployment} would take {_taken(one)}."
    if not config.probes:
        yield "Nothing is asked until you ask for it: tiltmeter audit plan -c FILE, then tiltmeter audit run -c FILE."


def _can_be_asked(config: Config, deployment: Deployment) -> bool:
    try:
        asked_model(config, deployment)
    except UsageError:
        return False
    return True


def _taken(one: Estimate) -> str:
    tokens = (one.usage.prompt + one.usage.completion) / 1000
    cost = "an unknown price (deployments[].price)" if one.usd is None else f"about {one.usd:.2f} USD"
    return f"{one.calls} calls, about {tokens:.0f}k tokens, {cost} and {one.seconds / 60:.0f} minutes"
