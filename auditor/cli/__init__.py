"""The auditor's commands. Each module of this package declares a few and imports heavy libraries only when one runs."""

import typer

from auditor.cli import (
    actions,
    analyze,
    arms,
    audit,
    audit_batch,
    check,
    code_store,
    decisions,
    demo,
    domains,
    export_coded,
    export_parquet,
    findings,
    glossary,
    import_config,
    init,
    items,
    judges,
    keys,
    leaks,
    offline,
    peers,
    pool,
    report,
    retention,
    review,
    score,
    serve,
    simulate,
    verify,
)

app = typer.Typer(no_args_is_help=True)
for module in (
    *(
        demo,
        check,
        import_config,
        serve,
        offline,
        analyze,
        items,
        leaks,
        peers,
        glossary,
        pool,
        report,
        retention,
        score,
    ),
    actions,
    simulate,
    verify,
    export_coded,
    export_parquet,
    code_store,
    decisions,
    init,
):
    app.registered_commands.extend(module.app.registered_commands)
app.add_typer(arms.app, name="arms")
app.add_typer(keys.app, name="key")
app.add_typer(domains.app, name="domains")
audit.app.registered_commands.extend(audit_batch.app.registered_commands)
app.add_typer(audit.app, name="audit")
app.add_typer(findings.findings_app, name="findings")
app.add_typer(findings.references_app, name="references")
app.add_typer(judges.app, name="judges")
app.add_typer(review.app, name="review")
