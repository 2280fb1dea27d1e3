"""The auditor's commands. Each module of this package declares a few and imports heavy libraries only when one runs."""

import typer

from auditor.cli import (
    analyze,
    audit,
    check,
    demo,
    domains,
    findings,
    import_config,
    judges,
    keys,
    offline,
    peers,
    pool,
    references,
    report,
    review,
    score,
    serve,
    simulate,
)

app = typer.Typer(no_args_is_help=True)
demo.register(app)
check.register(app)
import_config.register(app)
serve.register(app)
keys.register(app)
offline.register(app)
analyze.register(app)
peers.register(app)
domains.register(app)
audit.register(app)
findings.register(app)
judges.register(app)
pool.register(app)
references.register(app)
report.register(app)
review.register(app)
score.register(app)
simulate.register(app)
