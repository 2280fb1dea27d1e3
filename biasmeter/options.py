"""Define the options that several commands share."""

from pathlib import Path
from typing import Annotated, Final

import typer

DEFAULT_CONFIG: Final = "biasmeter.yaml"


def _default_config() -> Path:
    return Path(DEFAULT_CONFIG)


#: ``config: ConfigOption`` (the default is in it; a parameter takes no other).
ConfigOption = Annotated[
    Path,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        help="The configuration file.",
        default_factory=_default_config,
        show_default=DEFAULT_CONFIG,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
