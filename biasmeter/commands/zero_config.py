"""Make the configuration of ``biasmeter up`` without a file, and write it down so that other commands find it."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from auditor.config import Config, Deployment, default_config
from auditor.config.loading import OPENAI_MODEL, OPENAI_URL
from auditor.errors import UsageError

NAME: Final = "without-configuration.yaml"
#: Seconds in which a server must list its models.
_PATIENCE: Final = 3.0
_HEAD: Final = """\
# Written by `biasmeter up` without a configuration file, again at each start, for other commands (-c).
# The deployment's key is not here: only `biasmeter up` needs it, from its environment.
"""


def zero_config(environ: Mapping[str, str], port: int | None) -> Config:
    """Make the configuration from the environment, and write it into its ``data_dir``.

    Audits ask for ``OPENAI_MODEL``, else for the first model that the server lists, else for a usual one of OpenAI's.

    Raises
    ------
    ConfigError
        Neither a key nor a base URL is set, or one of them cannot be used.
    UsageError
        The file cannot be written.
    """
    (deployment,) = default_config(environ, port).deployments
    model = environ.get("OPENAI_MODEL") or _first_model(deployment)
    if model is None and deployment.base_url == OPENAI_URL:
        model = OPENAI_MODEL
    config = default_config(environ, port, model)
    path = config.data_dir / NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_HEAD + yaml.safe_dump(_written(config), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return config.from_file(path)


def _first_model(deployment: Deployment) -> str | None:
    """Return the first model of a server of one's own; of OpenAI's long list the first means nothing."""
    if deployment.base_url == OPENAI_URL:
        return None
    request = urllib.request.Request(deployment.url("models"), headers=deployment.fixed_headers())  # noqa: S310 -- checked
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 -- as above
            listed = json.load(answer)
        found = listed["data"][0]["id"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) and 0 < len(found) <= 200 and found.isprintable() else None


def _written(config: Config) -> dict[str, object]:
    (deployment,) = config.deployments
    shown = {"name": deployment.name, "base_url": deployment.base_url, "vendor": deployment.vendor}
    return {
        "data_dir": str(Path(config.data_dir).absolute()),
        "gateway": {"listen": str(config.gateway.listen)},
        "auditor": {"listen": str(config.auditor.listen)},
        "deployments": [{name: value for name, value in shown.items() if value is not None}],
        "routes": [
            {
                "model": route.model,
                "deployments": [one.name for one in route.deployments],
                "sample": route.sample,
                "capture": route.capture,
            }
            for route in config.routes
        ],
    }
