"""Parse YAML into plain data (mappings, lists and text) with the line of every value.

Scalars stay text (``off`` and ``no`` are not false, ``1:30`` is not 90): the key decides how they are read (see
``models``). Null means absent. Aliases and merge keys are followed within limits. ``loading`` then replaces
``${NAME}``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from typing_extensions import override  # in typing from 3.12 on

from auditor.config.problems import KeyPath, Problem, to_error
from auditor.config.values import quote
from auditor.errors import ConfigError

#: The greatest depth, more than people use and less than Python's limit.
DEEPEST: Final = 64

_TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep"

# "{url: ${NAME}}" is not YAML (a brace ends unquoted text inside braces), but people write it. Before parsing, the
# braces of a reference are replaced by two private characters, so that positions stay the same.
_OPEN, _CLOSE = "\ue000", "\ue001"
_REFERENCE: Final = re.compile(r"\$\{([^{}\n]*)\}")
_HIDDEN_REFERENCE: Final = re.compile(rf"\${_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with a limit on depth below Python's."""

    depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST and parent is not None:
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=parent.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def compose(text: str) -> yaml.Node | Problem | None:
    """Compose the single document of a text; None if it is empty."""
    hidden = _REFERENCE.sub(rf"${_OPEN}\1{_CLOSE}", text)
    try:
        return _compose(hidden)
    except yaml.YAMLError as error:
        return _explain(error, hidden)
    except (ValueError, OverflowError):
        return Problem(line=1, message="not valid YAML: an escape or a directive has an invalid number")


def restore_references(text: str) -> str:
    """Return text from the graph as it was written."""
    return _HIDDEN_REFERENCE.sub(r"${\1}", text)


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _explain(error: yaml.YAMLError, text: str) -> Problem:
    """Convert an error of PyYAML into a message with its place."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        return Problem(line=line, column=column, message=f"character U+{error.character:04X} is not allowed in YAML")
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark, message = _word_syntax(error, error.problem_mark, text)
        return Problem(line=mark.line + 1, column=mark.column + 1, message=f"not valid YAML: {message}")
    return Problem(line=1, message=f"not valid YAML: {_clean(str(error))}")


def _word_syntax(error: yaml.MarkedYAMLError, mark: yaml.Mark, text: str) -> tuple[yaml.Mark, str]:
    """Return a message for a common error of PyYAML, and the place to look at."""
    problem, context = error.problem or "", error.context or ""
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if r"'\t'" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        return mark, "a tab is used where only spaces are allowed"
    if "stream end" in problem or "end of stream" in problem:
        opened = error.context_mark
        if opened is not None and ("quoted" in context or "flow" in context):
            return opened, "the quote or bracket that opens here is never closed"
    if "scanning an alias" in context or "undefined alias" in problem or "cannot start any token" in problem:
        return mark, f"{_clean(problem)} (quote text that begins with * & @ ! % or `)"
    if "mapping values are not allowed" in problem:
        return mark, "a colon is not allowed here (quote text that contains one, or check the indentation)"
    if "but found another document" in problem:
        return mark, "a second document begins here; a configuration is one document"
    return mark, _clean(problem)


def _clean(text: str) -> str:
    """Return a library's message on one line, with references as they were written."""
    return restore_references(" ".join(text.split()))


#: Limits far above any real configuration, against files made to exhaust memory.
LARGEST_FILE: Final = 1024 * 1024
MOST_NODES: Final = 100_000

_MERGE: Final = "tag:yaml.org,2002:merge"
_NULL: Final = "tag:yaml.org,2002:null"
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset({"str", "int", "float", "bool", "null", "timestamp", "value", "merge"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The lines of all paths of one file."""

    source: str
    lines: dict[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a path, or of the nearest path above it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def at(self, *path: str | int) -> str:
        """Return ``file:line`` of a path."""
        return f"{self.source}:{self.line(path)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlDocument:
    """A file's content, the lines of its parts, and its problems."""

    data: Any
    places: Places
    problems: list[Problem]


def read_text(path: Path, *, advice: str = "") -> str:
    """Read the text of a YAML file of at most 1 MiB; ``advice`` ends the error that there is none.

    Raises
    ------
    ConfigError
        The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{advice}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, not a YAML file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE // 1024} KiB, which is too large for a configuration")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise to_error([Problem(line=line, message=message)], str(path)) from None


def load_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping of a YAML file, whose scalars are text; an empty file is an empty mapping.

    Raises
    ------
    ConfigError
        The file cannot be read, or has problems: one line for each, with file and line.
    """
    text = read_text(path)
    if not text.strip():
        return {}
    document = parse(text, str(path))
    if document.problems:
        raise to_error(document.problems, str(path))
    data: dict[str, Any] = document.data
    return data


def parse(text: str, source: str) -> YamlDocument:
    """Parse YAML text into data and problems; ``data`` is None if nothing could be read."""
    builder = _Builder()
    node = compose(text)
    if isinstance(node, Problem):
        builder.problems.append(node)
        data = None
    else:
        data = builder.build_root(node)
    return YamlDocument(data=data, places=Places(source=source, lines=builder.lines), problems=builder.problems)


@dataclass(slots=True)
class _Builder:
    """Walk the node graph once, and collect lines and problems."""

    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _nodes: int = 0
    _above: list[yaml.Node] = field(default_factory=list)

    def build_root(self, node: yaml.Node | None) -> Any:
        """Build the document, which must be a mapping."""
        if node is None:
            self.problems.append(Problem(line=1, message="the file is empty; it needs at least deployments and routes"))
            return None
        if not isinstance(node, yaml.MappingNode):
            self.problems.append(Problem(line=_line(node), message="must be a mapping: lines of the form key: value"))
            return None
        self.lines[()] = _line(node)
        return self._build(node, ())

    def _build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            if self._nodes == MOST_NODES + 1:
                self._refuse(node, path, f"aliases expand the file to more than {MOST_NODES} values")
            return None
        if any(node is ancestor for ancestor in self._above) or len(self._above) > DEEPEST:
            self._refuse(node, path, "an alias contains itself or is nested too deeply")
            return None
        self._above.append(node)
        try:
            return self._build_kind(node, path)
        finally:
            self._above.pop()

    def _build_kind(self, node: yaml.Node, path: KeyPath) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG_PREFIX + "map":
            return self._build_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG_PREFIX + "seq":
            return self._build_list(node, path)
        if isinstance(node, yaml.ScalarNode) and node.tag.removeprefix(_TAG_PREFIX) in _SCALARS:
            return self._build_scalar(node, path)
        self._refuse(node, path, f"the tag {quote(node.tag.removeprefix(_TAG_PREFIX))} is not allowed here")
        return None

    def _build_list(self, node: yaml.SequenceNode, path: KeyPath) -> list[Any]:
        items = []
        for index, child in enumerate(node.value):
            self.lines[(*path, index)] = _line(child)
            items.append(self._build(child, (*path, index)))
        return items

    def _build_mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        names: set[str] = set()
        for name, key, child in self._entries(node, path, names):
            here = (*path, name)
            self.lines[here] = _line(key)
            result[name] = self._build(child, here)
        return result

    def _entries(
        self, node: yaml.MappingNode, path: KeyPath, seen: set[str]
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield a mapping's own entries, then the merged ones that it does not have itself."""
        merged: list[yaml.MappingNode] = []
        lines: dict[str, int] = {}
        for key, child in node.value:
            if key.tag == _MERGE:
                merged.extend(self._merged(child, path))
                continue
            name = self._key(key, path)
            if name is None:
                continue
            if name in lines:
                self._refuse(key, (*path, name), f"is set twice (first on line {lines[name]})")
                continue
            lines[name] = _line(key)
            if name not in seen:
                yield name, key, child
        seen.update(lines)
        for other in merged:
            yield from self._merge(other, path, seen)

    def _merge(
        self, node: yaml.MappingNode, path: KeyPath, seen: set[str]
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        if any(node is ancestor for ancestor in self._above) or len(self._above) > DEEPEST:
            self._refuse(node, path, "an alias contains itself or is nested too deeply")
            return
        self._above.append(node)
        try:
            yield from list(self._entries(node, path, seen))
        finally:
            self._above.pop()

    def _merged(self, node: yaml.Node, path: KeyPath) -> list[yaml.MappingNode]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        mappings = [mapping for mapping in nodes if isinstance(mapping, yaml.MappingNode)]
        if len(mappings) != len(nodes):
            self._refuse(node, path, "<< merges mappings only")
        self._nodes += sum(len(mapping.value) for mapping in mappings)
        return mappings if self._nodes <= MOST_NODES else []

    def _key(self, node: yaml.Node, path: KeyPath) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._refuse(node, path, "a key must be text")
            return None
        return self._text(node, path)

    def _build_scalar(self, node: yaml.ScalarNode, path: KeyPath) -> str | None:
        return None if node.tag == _NULL else self._text(node, path)

    def _text(self, node: yaml.ScalarNode, path: KeyPath) -> str | None:
        text = restore_references(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(node, path, "contains half a character (a lone surrogate)")
            return None
        return text

    def _refuse(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(line=_line(node), path=path, message=message))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
