"""``biasmeter gateway``: the gateway as a process of its own."""

import os
from typing import Annotated

import typer

from biasmeter.options import ConfigOption

app = typer.Typer()


@app.command("gateway")
def gateway_command(
    config: ConfigOption,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: gateway.workers.")] = None,
) -> None:
    """Run the gateway: forward traffic, spool copies, ship them to the store.

    Ends on SIGTERM when drained; reads the configuration again on SIGHUP.
    """
    from auditor.config import Config, load
    from auditor.domain.log_lines import start_logging
    from auditor.postgres.embedded import open_store
    from gateway.processes import supervisor

    start_logging("biasmeter gateway")

    def read() -> Config:
        loaded = load(config, os.environ)
        if workers is None:
            return loaded
        return loaded.model_copy(update={"gateway": loaded.gateway.model_copy(update={"workers": workers})})

    loaded = read()
    url, required = loaded.database_url(os.environ), not supervisor.knows_keys(loaded)
    with open_store(loaded.data_dir, url, required=required) as database_url:
        supervisor.run(loaded, database_url, read)
