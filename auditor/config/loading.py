"""From a file, or from the environment alone, to a ``Config``: the composition of the other modules here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from auditor.config import references, yaml_source
from auditor.config.environment import Substitution
from auditor.config.models import ANY_MODEL, Config
from auditor.config.problems import Path as KeyPath
from auditor.config.problems import Problem, to_error
from auditor.config.wording import word
from auditor.config.yaml_source import LARGEST_FILE, Document, Places
from auditor.errors import ConfigError

OPENAI_URL: Final = "https://api.openai.com/v1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A configuration, and the line in its file of everything in it."""

    config: Config
    places: Places


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """Load a configuration file.

    Raises
    ------
    ConfigError
        One line per problem, each with file and line.
    """
    return read(path, environ).config


def read(path: Path, environ: Mapping[str, str]) -> Loaded:
    """Load a configuration file together with the places of its parts; raises as ``load`` does."""
    text = _decode(_read_bytes(path), str(path))
    return loads(text, source=str(path), folder=path.absolute().parent, environ=environ)


def loads(text: str, *, source: str, folder: Path, environ: Mapping[str, str]) -> Loaded:
    """Load a configuration from text; relative paths in it are relative to ``folder``; raises as ``load`` does."""
    document = yaml_source.parse(text, source)
    if document.data is None:
        raise to_error(document.problems, source)
    substitution = Substitution(environ=environ, places=document.places)
    data = substitution.apply(document.data)
    problems = [*document.problems, *substitution.problems]
    problems += _check_references(data, document)
    config: Config | None = None
    try:
        config = Config.model_validate(data, context={"folder": folder, "environ": environ})
    except ValidationError as error:
        problems += _word_all(error, document, substitution.filled, {one.path for one in problems})
    if config is None or problems:
        raise to_error(problems, source)
    return Loaded(config=config, places=document.places)


def default_config(environ: Mapping[str, str]) -> Config:
    """Make the configuration that holds without a file: OpenAI, or whatever speaks its protocol, behind one route.

    Raises
    ------
    ConfigError
        Neither a key nor a base URL is set, or one of them cannot be used.
    """
    key, url = environ.get("OPENAI_API_KEY"), environ.get("OPENAI_BASE_URL")
    if not key and not url:
        raise ConfigError(
            "there is no configuration: set OPENAI_API_KEY (or OPENAI_BASE_URL for a server that needs no key), "
            "or write a tiltmeter.yaml and name it with -c"
        )
    deployment: dict[str, Any] = {"name": "openai", "base_url": url or OPENAI_URL, "api_key": key or None}
    if not url:
        deployment["vendor"] = "openai"
    route = {"model": ANY_MODEL, "deployments": ["openai"], "sample": 1.0, "capture": "hashed"}
    try:
        return Config.model_validate({"deployments": [deployment], "routes": [route]}, context={"environ": environ})
    except ValidationError as error:
        lines = [_word_default(one["loc"], word(one, Config, hide=True)) for one in error.errors()]
        raise ConfigError("\n".join(lines)) from None


def _word_default(path: KeyPath, words: str) -> str:
    names = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
    last = str(path[-1]) if path else ""
    return f"{names.get(last, last)}: {words}"


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; name the configuration with -c") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; a YAML file is needed") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE // 1024} KiB; this is no configuration")
    return content


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise to_error([Problem(line=line, message=message)], source) from None


def _check_references(data: Any, document: Document) -> list[Problem]:
    return [
        Problem(line=document.places.line(path), path=path, message=message) for path, message in references.check(data)
    ]


def _word_all(error: ValidationError, document: Document, filled: set[KeyPath], told: set[KeyPath]) -> list[Problem]:
    """Word what pydantic found, but for what only follows from something else that is told."""
    errors = error.errors()
    below = {path[:length] for path in told | {one["loc"] for one in errors} for length in range(len(path))}
    problems = []
    for one in errors:
        path = one["loc"]
        follows = any(path[:length] in told for length in range(1, len(path) + 1))
        # pydantic leaves out what it refused, and then finds the list too short.
        if follows or (one["type"] == "too_short" and path in below):
            continue
        message = word(one, Config, hide=path in filled)
        problems.append(Problem(line=document.places.line(path), path=path, message=message))
    return problems
