"""``python -m auditor``: run the auditor as a child of ``biasmeter up``, which sends its bootstrap on stdin."""

import asyncio
import logging
import sys

from auditor import parent_pipe
from auditor.bootstrap import AuditorBootstrap, AuditorTask
from auditor.domain.log_lines import start_logging
from auditor.errors import AuditError, UsageError
from auditor.extras import missing_extra


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
                from auditor.process import serve, startup_notice  # noqa: PLC0415

                for line in startup_notice(bootstrap.config):
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


if __name__ == "__main__":
    main()
