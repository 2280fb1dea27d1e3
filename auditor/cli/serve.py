"""``biasmeter auditor`` and ``biasmeter migrate``: the auditor as a process of its own, and the store's schema."""

import asyncio
import logging
import os

import typer

from biasmeter.options import ConfigOption

app = typer.Typer()


@app.command("auditor")
def _auditor(config: ConfigOption) -> None:
    """Run the auditor: coding, estimates, monitoring and the API. Stops on SIGTERM; reloads on SIGHUP."""
    from auditor.coding.profiles import compile_profile
    from auditor.config import Config, load
    from auditor.domain.log_lines import start_logging
    from auditor.postgres.embedded import open_store
    from auditor.process import serve

    start_logging("biasmeter auditor")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each judge's call helps nobody

    def read() -> Config:
        loaded = load(config, os.environ)
        for audit in loaded.audits:
            compile_profile(audit)
        return loaded

    loaded = read()
    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        asyncio.run(serve(loaded, database_url, read))


@app.command("migrate")
def _migrate(config: ConfigOption) -> None:
    """Migrate the store to the schema of this release. No other command changes the schema."""
    from auditor.config import load
    from auditor.postgres.embedded import open_store
    from auditor.store.engine import make_engine
    from auditor.store.schema import migrate

    async def run(database_url: str) -> tuple[str | None, str]:
        engine = make_engine(database_url)
        try:
            return await migrate(engine)
        finally:
            await engine.dispose()

    loaded = load(config, os.environ)
    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        before, after = asyncio.run(run(database_url))
    typer.echo(f"the store has schema {after} already" if before == after else f"the store now has schema {after}")
