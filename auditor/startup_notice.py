"""The notice that the auditor writes when it starts: what its numbers lack, and how to begin."""

from collections.abc import Iterator

from auditor.access import pinned_model
from auditor.config import Config, Deployment
from auditor.errors import UsageError
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.forecast import PlanForecast, count_plan_tokens, forecast
from auditor.probes.plan import PlanSpec, make_plan

_LEXICON = "lexicon"


def startup_notice(config: Config) -> Iterator[str]:
    """Yield the lines of the notice."""
    if set(config.panel.judges) <= {_LEXICON}:
        yield (
            "NOTE: no judges are configured. The built-in lexicon codes the elaborations. It is a coarse word list and "
            "misses irony and qualification. Configure judges before you rely on a number (docs/judges.md)."
        )
    judging = {judge.deployment for judge in config.judges}
    audited = [deployment for deployment in config.deployments if deployment.name not in judging]
    unnamed = [deployment.name for deployment in audited if not _has_model(config, deployment)]
    if unnamed:
        names = ", ".join(unnamed)
        yield f"To probe {names}, set its model (deployments[].model; without a configuration OPENAI_MODEL)."
    planned = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool(), seed=config.seed))
    for needed in forecast(planned, count_plan_tokens(planned), audited):
        yield f"A first audit of {needed.deployment} needs {_needs(needed)}."
    if not config.probes:
        file = config.file_argument
        yield f"No probes are sent until you start them, in the console (http://{config.auditor.listen}/start) or with:"
        yield f"biasmeter audit plan -c {file}"
        yield f"biasmeter audit run -c {file} --yes"


def _has_model(config: Config, deployment: Deployment) -> bool:
    try:
        pinned_model(config, deployment)
    except UsageError:
        return False
    return True


def _needs(needed: PlanForecast) -> str:
    tokens = (needed.usage.prompt + needed.usage.completion) / 1000
    cost = "an unknown price (deployments[].price)" if needed.usd is None else f"about {needed.usd:.2f} USD"
    return f"{needed.calls} calls, about {tokens:.0f}k tokens, {cost} and {needed.seconds / 60:.0f} minutes"
