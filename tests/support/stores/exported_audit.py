"""What the tests of exported codings share: a small audit, its configuration file, and commands."""

import asyncio
from datetime import timedelta
from pathlib import Path

from support.stores.exchanges import NOON

from biasmeter.commands.main import app

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}


def later():
    return NOON + timedelta(minutes=30)


def written(folder: Path, url: str, text: str = "") -> Path:
    path = folder / "biasmeter.yaml"
    path.write_text(
        f"data_dir: {folder / 'data'}\nstore: {{url: '{url}'}}\n"
        'deployments:\n  - {name: d1, base_url: "http://127.0.0.1:1/v1", model: m1}\n'
        '  - {name: d2, base_url: "http://127.0.0.1:1/v1", model: m2}\n'
        + ("" if "routes:" in text else 'routes: [{model: "*", deployments: [d1]}]\n')
        + text
    )
    return path


async def command(*arguments: object) -> None:
    """Run a command, which has an event loop of its own."""
    await asyncio.to_thread(app, [str(argument) for argument in arguments], standalone_mode=False)
