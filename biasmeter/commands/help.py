"""Group the commands in ``biasmeter --help``, and end the help of each with an example and a documentation page."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

#: Title of a group in ``biasmeter --help``, and its commands: first the five from nothing to a first estimate.
GROUPS: Final = {
    "Start": ("demo", "init", "check", "up", "audit"),
    "Route": ("gateway", "key", "import-config", "arms", "actions"),
    "Measure": (
        *("code", "code-store", "score", "score-store", "replay", "judges", "review", "pool", "leaks", "domains"),
        *("import-responses", "simulate"),
    ),
    "Understand": (
        *("report", "analyze", "difference", "items", "decisions", "peers", "compare", "findings", "references"),
        "glossary",
    ),
    "Operate": (
        *("auditor", "migrate", "retention", "erase", "verify", "export-exchanges", "import-exchanges"),
        *("export-coded", "export-inspect", "export-parquet", "deploy-files"),
    ),
}

#: Where the pages lie in the source distribution and in the repository.
DOCUMENTATION: Final = "docs/"

#: Command: arguments of its example, and its page.
EXAMPLES: Final = {
    "actions": ("-c biasmeter.yaml --dry-run", "actions.md"),
    "analyze": ("coded.jsonl -o results --by deployment,task", "estimates.md"),
    "arms list": ("-c biasmeter.yaml", "mitigation.md"),
    "arms stop": ('-c biasmeter.yaml desk careful --because "answers are too long"', "mitigation.md"),
    "audit batch": ("-c biasmeter.yaml --design sentinel --deployment gpt-4o -o batches", "interchange.md"),
    "audit import-batch": ("-c biasmeter.yaml batch_abc_output.jsonl", "interchange.md"),
    "audit plan": ("-c biasmeter.yaml --design sentinel --deployment gpt-4o-eu", "probes.md"),
    "audit run": ("-c biasmeter.yaml --design sentinel --budget-usd 5", "probes.md"),
    "audit status": ("-c biasmeter.yaml", "probes.md"),
    "auditor": ("-c biasmeter.yaml", "deploy.md"),
    "check": ("-c biasmeter.yaml", "upstreams.md"),
    "code": ("responses.jsonl -o coded.jsonl --judges lexicon", "selection.md"),
    "code-store": ("-c biasmeter.yaml --engine ray --last 90d", "scale.md"),
    "compare": ("-c biasmeter.yaml --select deployment=gpt-4o-eu --by tag.release", "replay.md"),
    "decisions": ("decisions.csv -o results --preset ll144", "decisions.md"),
    "deploy-files": ("-o deploy", "deploy.md"),
    "difference": ("coded.jsonl gpt-4o-eu gpt-4o-us", "estimates.md"),
    "demo": ("--out biasmeter-demo", "simulator.md"),
    "domains generate": (
        "-c biasmeter.yaml --domain housing --description 'Bias against tenants' --deployment gpt -o housing.jsonl",
        "domains.md",
    ),
    "domains list": ("", "domains.md"),
    "domains show": ("politics", "domains.md"),
    "erase": ("-c biasmeter.yaml --user user-1234", "retention.md"),
    "export-coded": ("-c biasmeter.yaml --origin probe --last 30d -o coded.jsonl.gz", "python.md"),
    "export-exchanges": ("-c biasmeter.yaml --select deployment=gpt-4o-eu -o exchanges.jsonl.gz", "exchanges.md"),
    "export-parquet": ("-c biasmeter.yaml -o columns", "scale.md"),
    "export-inspect": ("coded.jsonl -o logs", "interchange.md"),
    "findings accept-reference": ("-c biasmeter.yaml finding_1a2b3c4d --note 'new release'", "monitoring.md"),
    "findings acknowledge": ("-c biasmeter.yaml finding_1a2b3c4d --note 'looking into it'", "monitoring.md"),
    "findings list": ("-c biasmeter.yaml --state open", "monitoring.md"),
    "findings show": ("-c biasmeter.yaml finding_1a2b3c4d", "monitoring.md"),
    "findings silence": ("-c biasmeter.yaml finding_1a2b3c4d --for 3d --note 'fix on Monday'", "monitoring.md"),
    "gateway": ("-c biasmeter.yaml --workers 4", "gateway.md"),
    "glossary": ("'split coding'", "glossary.md"),
    "import-config": ("litellm.yaml -o biasmeter.yaml", "import.md"),
    "import-exchanges": ("-c biasmeter.yaml exchanges.jsonl.gz", "exchanges.md"),
    "import-responses": ("generations.jsonl -o responses.jsonl --format decodingtrust", "selection.md"),
    "init": ("--base-url http://127.0.0.1:8000/v1 --key-env '' --model llama-3", "deploy.md"),
    "items": ("coded.jsonl -o items.json", "pool.md"),
    "leaks": ("-c biasmeter.yaml --deployment gpt-4o-eu", "pool.md"),
    "judges anchors": ("-c biasmeter.yaml", "judges.md"),
    "judges report": ("coded.jsonl -c biasmeter.yaml -o results", "judges.md"),
    "judges select": ("responses.jsonl -c biasmeter.yaml --size 3 -o results", "judges.md"),
    "key create": ("-c biasmeter.yaml --name support-desk --rpm 600", "gateway.md"),
    "key list": ("-c biasmeter.yaml", "gateway.md"),
    "key revoke": ("-c biasmeter.yaml key_1a2b3c4d5e6f", "gateway.md"),
    "migrate": ("-c biasmeter.yaml", "deploy.md"),
    "peers": ("scores.jsonl -o results --target gpt-4o-eu", "peers.md"),
    "pool": ("--statements own.jsonl -o results", "pool.md"),
    "references accept": ("-c biasmeter.yaml --deployment gpt-4o-eu --since 2026-03-01", "monitoring.md"),
    "references list": ("-c biasmeter.yaml", "monitoring.md"),
    "replay": ("-c biasmeter.yaml --select deployment=gpt-4o-eu --formats BJ,CTO", "replay.md"),
    "report": ("-c biasmeter.yaml --from 2026-03-01 --to 2026-04-01 -o march", "report.md"),
    "retention": ("-c biasmeter.yaml --dry-run", "retention.md"),
    "review export": ("-c biasmeter.yaml --n 200 -o to-label.csv", "reviews.md"),
    "review import": ("-c biasmeter.yaml to-label.csv --reviewer ana", "reviews.md"),
    "score": ("answers.jsonl -o scores.jsonl -c biasmeter.yaml --domain politics", "embeddings.md"),
    "score-store": ("-c biasmeter.yaml --budget-usd 5", "scale.md"),
    "simulate": ("--port 4010", "simulator.md"),
    "up": ("-c biasmeter.yaml", "gateway.md"),
    "verify": ("-c biasmeter.yaml --head head.json --public-key 5f0c...", "retention.md"),
}


class GroupedCommands(TyperGroup):
    """The commands in the order of their groups; Typer would list the commands first that have no others below them."""

    def __init__(self, *, commands: Mapping[str, Any], **attributes: Any) -> None:
        ordered = {name: commands[name] for names in GROUPS.values() for name in names}
        super().__init__(commands=ordered, **attributes)


def add_help(app: typer.Typer) -> None:
    """Put each command into its group, and add its example and its page to its help."""
    titles = {name: title for title, names in GROUPS.items() for name in names}
    for command in app.registered_commands:
        command.rich_help_panel = titles[_name(command)]
    for group in app.registered_groups:
        group.rich_help_panel = titles[group.name or ""]
    for name, command in _commands(app, ()):
        arguments, page = EXAMPLES[name]
        example = f"biasmeter {name} {arguments}".rstrip()
        command.epilog = f"Example: {example}\n\nDocumentation: {DOCUMENTATION}{page}"


def _commands(app: typer.Typer, path: tuple[str, ...]) -> Iterator[tuple[str, CommandInfo]]:
    for command in app.registered_commands:
        yield " ".join((*path, _name(command))), command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, (*path, group.name or ""))


def _name(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")
