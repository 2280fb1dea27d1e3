"""``biasmeter items``: which statements of a coded file distinguish deployments, and which should be changed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from biasmeter.options import JsonOption
from biasmeter.progress import progress
from biasmeter.tables import table_lines

app = typer.Typer()


@app.command("items")
def items(
    coded: Annotated[Path, typer.Argument(help="Coded responses, JSONL or JSONL.gz.", show_default=False)],
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the analysis as JSON.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Analyse statements as items of a test: difficulty, discrimination, bias by deployment, duplicates, a short form.

    Statements appear by their ids only, because their texts can offend.
    """
    from auditor.documents.jsonl import Rows, require_file, require_target
    from auditor.estimation.items import analyse_items, item_answer

    require_file(coded)
    if out is not None:
        require_target(out, coded)
    with progress(coded, "reading") as on_bytes:
        rows = Rows(coded, skip_bad=skip_bad, on_bytes=on_bytes)
        found = analyse_items([answer for _, answer in rows.read(item_answer) if answer is not None])
    for complaint in rows.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    if out is not None:
        out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(found, sort_keys=True))
        return
    for line in _lines(found):
        typer.echo(line)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    every = found["items"]
    yield f"{len(every)} statements, {found['n_respondents']} respondents, {len(found['deployments'])} deployments"
    dead = [one["statement"] for one in every if one["dead"]]
    weak = [one["statement"] for one in every if one.get("discrimination", 1.0) < 0]
    pairs = [" = ".join(one["statements"]) for one in found["duplicates"]]
    for name, listed in (("dead", dead), ("negative discrimination", weak), ("duplicates", pairs)):
        yield f"{name}: {', '.join(listed) or 'none'}"
    yield from table_lines(
        [
            ("works differently", "deployment", "log odds ratio", "p (Holm)"),
            *(
                (one["statement"], one["deployment"], f"{one['log_odds_ratio']:+.2f}", f"{one['p_holm']:.4f}")
                for one in found["differential"]
            ),
        ],
        right=(2, 3),
    )
    short = found["short_form"]
    if "reason" in short:
        yield f"no short form: {short['reason']}"
    else:
        yield (
            f"short form: {len(short['statements'])} statements keep the ranks on the half that did not choose them "
            f"(rho {short['rank_correlation']:.2f})"
        )
        between = {"short form": "independent_correlation", "all items": "whole_correlation"}
        known = [f"{name} {short[key]:.2f}" for name, key in between.items() if key in short]
        if known:
            yield f"with all items on the other half: {', '.join(known)}"
