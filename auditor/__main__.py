"""``python -m auditor``: run the auditor as a child of ``biasmeter up``, which sends its bootstrap on stdin."""

import asyncio
import logging
import sys
from collections.abc import Iterator

from auditor import parent_pipe
from auditor.bootstrap import AuditorBootstrap, AuditorTask
from auditor.config import Config, Deployment
from auditor.domain.log_lines import start_logging
from auditor.errors import AuditError, UsageError
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.estimate import PlanEstimate, estimate, forecast
from auditor.probes.plan import PlanSpec, make_plan
from auditor.probes.session import asked_model
from biasmeter.extras import missing_extra


async def _migrate(database_url: str) -> None:
    from auditor.store.engine import make_engine  # noqa: PLC0415 -- each task waits for its own libraries alone
    from auditor.store.schema import migrate  # noqa: PLC0415

    engine = make_engine(database_url)
    try:
        await migrate(engine)
    finally:
        await engine.dispose()


def main() -> None:
    """Run the task of the bootstrap."""
    start_logging("biasmeter auditor")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs a line for each call of a judge
    logging.getLogger("alembic").setLevel(logging.WARNING)
    bootstrap: AuditorBootstrap = parent_pipe.receive()
    try:
        match bootstrap.task:
            case AuditorTask.MIGRATE:
                asyncio.run(_migrate(bootstrap.database_url))
            case AuditorTask.SERVE:
                from auditor.process import serve  # noqa: PLC0415

                for line in startup_lines(bootstrap.config):
                    logging.getLogger(__name__).info("%s", line)
                asyncio.run(serve(bootstrap.config, bootstrap.database_url))
    except AuditError as error:
        parent_pipe.report(error=str(error))
        sys.exit(parent_pipe.HOPELESS if isinstance(error, UsageError) else 1)
    except ModuleNotFoundError as error:
        advice = missing_extra(error)
        if advice is None:
            raise
        parent_pipe.report(error=f"the auditor needs {advice}")
        sys.exit(parent_pipe.HOPELESS)


_LEXICON = "lexicon"


def startup_lines(config: Config) -> Iterator[str]:
    """Yield the lines of the notice."""
    if set(config.panel.judges) <= {_LEXICON}:
        yield (
            "NOTE: no judges are configured. The built-in lexicon codes the elaborations. It is a coarse word list and "
            "misses irony and qualification. Configure judges before you rely on a number (docs/judges.md)."
        )
    judging = {judge.deployment for judge in config.judges}
    audited = [deployment for deployment in config.deployments if deployment.name not in judging]
    unnamed = [deployment.name for deployment in audited if not _can_be_asked(config, deployment)]
    if unnamed:
        names = ", ".join(unnamed)
        yield f"To probe {names}, set its model (deployments[].model; without a configuration OPENAI_MODEL)."
    planned = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool(), seed=config.seed))
    for one in estimate(planned, forecast(planned), audited):
        yield f"A first audit of {one.deployment} needs {_taken(one)}."
    if not config.probes:
        file = config.file_argument
        yield f"No probes are sent until you start them, in the console (http://{config.auditor.listen}/start) or with:"
        yield f"biasmeter audit plan -c {file}"
        yield f"biasmeter audit run -c {file} --yes"


def _can_be_asked(config: Config, deployment: Deployment) -> bool:
    try:
        asked_model(config, deployment)
    except UsageError:
        return False
    return True


def _taken(one: PlanEstimate) -> str:
    tokens = (one.usage.prompt + one.usage.completion) / 1000
    cost = "an unknown price (deployments[].price)" if one.usd is None else f"about {one.usd:.2f} USD"
    return f"{one.calls} calls, about {tokens:.0f}k tokens, {cost} and {one.seconds / 60:.0f} minutes"


if __name__ == "__main__":
    main()
