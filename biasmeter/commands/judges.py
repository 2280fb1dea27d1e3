"""``biasmeter judges``: choose a panel, report its agreement, and check its judges for drift."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.errors import InputError, UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.progress import counting
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.judges.judge import Judge
    from auditor.reliability.anchors import AnchorResult
    from auditor.reliability.rating import Labels
    from auditor.reliability.sample import SampleItem
    from auditor.store.anchors import AnchorRun

app = typer.Typer(no_args_is_help=True, help="Choose a panel of judges, and measure its reliability and drift.")

OutOption = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the sample and of the bootstrap.")]
BootOption = Annotated[int, typer.Option(min=20, max=100_000, help="Replicates of the bootstrap.")]
_HERE: Final = Path()


@app.command("select")
def _select(
    responses: Annotated[Path, typer.Argument(help="Responses of the audited deployments, JSONL or JSONL.gz.")],
    config: ConfigOption,
    size: Annotated[int, typer.Option(min=1, max=99, help="Number of judges on the panel.")] = 3,
    sample: Annotated[int, typer.Option(min=1, help="Number of texts that every candidate reads.")] = 200,
    out: OutOption = _HERE,
    seed: SeedOption = 0,
    n_boot: BootOption = 2000,
    as_json: JsonOption = False,
) -> None:
    """Let all declared judges read a stratified sample, and choose the panel that agrees best. Writes judges.json.

    The panel has at most one judge of a vendor, and none of an audited vendor where that is possible. Verdicts are
    written to judges.votes.jsonl as they arrive, so the same command continues where it was stopped.
    """
    from auditor.config import load
    from auditor.documents.codec import canonical_bytes
    from auditor.documents.output import check_folder, write_files
    from auditor.judges.loading import load_judges
    from auditor.reliability import choice, document
    from auditor.reliability.kappas import Agreements

    loaded = load(config, os.environ)
    names = [judge.name for judge in loaded.judges]
    _require_candidates(names, size)
    check_folder(out)
    items = _sample(responses, sample, seed)
    judges = load_judges(names, loaded)
    labels = asyncio.run(_rate(judges, items, out))
    agreements = Agreements(document.ballots_of(items, labels, judges), seed=seed, n_boot=n_boot)
    vendors = choice.judge_vendors(loaded)
    candidates = [
        choice.PanelCandidate(judge=name, vendor=vendors[name], kappa=agreements.mean_with_others(name).value)
        for name in names
    ]
    audited = {choice.vendor_of(loaded, item.deployment) for item in items}
    chosen = choice.choose(candidates, size, audited)
    selection = document.PanelSelection(
        items=items,
        labels=labels,
        judges=judges,
        candidates=candidates,
        choice=chosen,
        audited=audited,
        seed=seed,
        n_boot=n_boot,
    )
    content = canonical_bytes(document.judges_document(selection, agreements))
    write_files(out, {"judges.json": content})
    _show(content, choice_lines, out / "judges.json", as_json=as_json)


@app.command("report")
def _report(
    coded: Annotated[Path, typer.Argument(metavar="CODED.jsonl", help="Coded rows, .gz or not.")],
    config: Annotated[
        Path | None, typer.Option("-c", "--config", metavar="FILE", help="The configuration that names the vendors.")
    ] = None,
    out: OutOption = _HERE,
    seed: SeedOption = 0,
    n_boot: BootOption = 2000,
    as_json: JsonOption = False,
) -> None:
    """Report how far the judges of a coded file agree, and how the rates change without judges of an audited vendor.

    Writes reliability.json. Without -c no vendor is known, and no judge is left out.
    """
    from auditor.config import load_without_upstream_keys
    from auditor.documents.codec import canonical_bytes
    from auditor.documents.output import check_folder, write_files
    from auditor.reliability import choice, document
    from auditor.reliability.coded_file import read_coded

    check_folder(out)
    loaded = load_without_upstream_keys(config, os.environ) if config else None
    judges = choice.judge_vendors(loaded) if loaded else {}
    audited = {entry.name: choice.vendor_of(loaded, entry.name) for entry in loaded.deployments} if loaded else {}
    report = document.reliability_document(read_coded(coded), judges, audited, seed=seed, n_boot=n_boot)
    content = canonical_bytes(report)
    write_files(out, {"reliability.json": content})
    _show(content, reliability_lines, out / "reliability.json", as_json=as_json)


@app.command("anchors")
def _anchors(config: ConfigOption, as_json: JsonOption = False) -> None:
    """Let the judges of the panel label the anchor texts now, and report changes since their first run.

    Anchor texts have known labels. The judges are asked at their deployments, not through the gateway. The runs are
    kept in the store.
    """
    from auditor.config import load
    from auditor.jobs.anchors import ask_judges, dropped_lines, read_standings
    from auditor.store.engine import transaction
    from auditor.work import utc_now
    from biasmeter.store_work import in_store

    loaded = load(config, os.environ)

    async def run(engine: "AsyncEngine") -> "dict[str, tuple[AnchorRun, AnchorResult]]":
        await ask_judges(engine, loaded, utc_now)
        async with transaction(engine) as connection:
            return await read_standings(connection)

    standings = in_store(loaded, run)
    of_panel = {judge: standing for judge, standing in standings.items() if judge in loaded.panel.judges}
    for line in anchor_lines(of_panel, as_json=as_json):
        typer.echo(line)
    for line in dropped_lines(of_panel):
        typer.echo(f"warning: {line}", err=True)


def _require_candidates(names: Sequence[str], size: int) -> None:
    if len(names) < max(size, 2):
        raise UsageError(
            f"judges: {len(names)} declared, and a panel of {size} is chosen among at least {max(size, 2)}"
        )


def _sample(path: Path, size: int, seed: int) -> "list[SampleItem]":
    from auditor.coding.responses import read_responses
    from auditor.reliability.sample import draw_sample, readable_items

    items = draw_sample(readable_items(read_responses(path)), size, seed)
    if not items:
        raise InputError(f"{path}: no response has a text and a known statement, so there is nothing to judge")
    return items


async def _rate(judges: "Sequence[Judge]", items: "Sequence[SampleItem]", out: Path) -> "Labels":
    from auditor.coding.panel import Panel
    from auditor.reliability.rating import VerdictFile, rate

    out.mkdir(parents=True, exist_ok=True)
    verdicts = VerdictFile(out / "judges.votes.jsonl")
    async with Panel(judges=tuple(judges)):
        with counting("judging") as on_progress:
            done, total = count(1), len(judges) * len(items)
            return await rate(judges, items, verdicts, lambda: on_progress(next(done), total))


def _show(content: bytes, lines: Callable[[dict[str, Any]], Iterator[str]], path: Path, *, as_json: bool) -> None:
    if as_json:
        typer.echo(content.decode(), nl=False)
        return
    for line in lines(json.loads(content)):
        typer.echo(line)
    typer.echo(f"\n{path}")


def choice_lines(selection: Mapping[str, Any]) -> Iterator[str]:
    """Show the candidates, the chosen panel, and its reliability."""
    chosen = selection["panel"]["judges"]
    yield from table_lines(
        [
            ("judge", "vendor", "kappa_elab [95 %]", "labels", "refused", "place on the panel"),
            *(
                (
                    candidate["judge"],
                    candidate["vendor"],
                    _interval(candidate["kappa_elab"]),
                    str(selection["sample"]["n"] - candidate["refused"]),
                    str(candidate["refused"]),
                    str(chosen.index(candidate["judge"]) + 1) if candidate["judge"] in chosen else "",
                )
                for candidate in selection["candidates"]
            ),
        ],
    )
    yield ""
    yield from _reliability_table(selection["panel"]["reliability"])
    if selection["panel"]["self_vendor"]:
        yield ""
        yield (
            f"warning: {', '.join(selection['panel']['self_vendor'])}: of a vendor that is audited; "
            "`biasmeter judges report` shows the rates without each of them"
        )


def reliability_lines(reliability: Mapping[str, Any]) -> Iterator[str]:
    """Show how the judges of a coded file agree, and the rates without those of an audited vendor."""
    if reliability["flags"]:
        yield "warning: the deployments were read by different panels of judges (panel_differs): do not compare them"
    yield from table_lines(
        [
            ("judge", "other", "layer", "deployment", "n", "kappa [95 %]"),
            *(
                (row["judge"], row["other"], row["layer"], row["deployment"] or "all", str(row["n"]), _interval(row))
                for row in reliability["kappa"]
            ),
        ],
    )
    yield ""
    yield from _reliability_table(reliability["reliability"])
    if isinstance(reliability["self_vendor"], list) and reliability["self_vendor"]:
        yield ""
        yield from table_lines(
            [
                ("left out", "deployment", "rate", "all judges [95 %]", "without [95 %]"),
                *(
                    (row["judge"], row["deployment"], row["metric"], _interval(row["all"]), _interval(row["without"]))
                    for row in reliability["self_vendor"]
                ),
            ],
        )


def anchor_lines(standings: "Mapping[str, tuple[AnchorRun, AnchorResult]]", *, as_json: bool) -> Iterator[str]:
    """Show how often each judge agrees with the anchors, and with its first run."""
    if as_json:
        judges = {
            judge: {**asdict(result), "dropped": result.dropped, "at": run.at.isoformat(), "coder": run.coder}
            for judge, (run, result) in standings.items()
        }
        yield json.dumps({"judges": judges}, sort_keys=True)
        return
    yield from table_lines(
        [
            ("judge", "agrees with the anchors [95 %]", "at first", "same as at first [95 %]", "p of a drop"),
            *(
                (
                    judge,
                    f"{result.agreed}/{result.n} [{result.low:.3f}, {result.high:.3f}]",
                    f"{result.first_agreed}/{result.n}",
                    f"{result.same}/{result.n} [{result.same_low:.3f}, {result.same_high:.3f}]",
                    f"{result.p:.3g}",
                )
                for judge, (_, result) in standings.items()
            ),
        ],
    )


def _reliability_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return table_lines(
        [
            ("panel read", "layer", "judges", "mean kappa [95 %]", "votes worth"),
            *(
                (
                    row["deployment"] or "all",
                    row["layer"],
                    str(row["judges"]),
                    _interval(row),
                    f"{row['n_eff']:.2f}" if row["n_eff"] is not None else "",
                )
                for row in rows
            ),
        ],
    )


def _interval(entry: Mapping[str, Any]) -> str:
    if "missing" in entry:
        return str(entry["missing"])
    bounds = f" [{entry['low']:.3f}, {entry['high']:.3f}]" if "low" in entry else ""
    return f"{entry['value']:.3f}{bounds}"
