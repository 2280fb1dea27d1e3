"""YAML text → plain data, with the line of everything: mappings, lists and text, and nothing else.

Scalars stay the text that was written (``off`` is not false, ``no`` is not false, ``1:30`` is not 90): the key they
stand at decides how they are read (``models``). Null means absent. Aliases and merge keys are followed within limits.
``environment`` then puts variables in the place of ``${NAME}``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from auditor.config.problems import Path, Problem
from auditor.config.syntax import DEEPEST, compose, unveil
from auditor.config.values import quote

#: Limits that no configuration written by people meets; they stop files made to exhaust memory.
LARGEST_FILE: Final = 1024 * 1024
MOST_NODES: Final = 100_000

_MERGE: Final = "tag:yaml.org,2002:merge"
_NULL: Final = "tag:yaml.org,2002:null"
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset({"str", "int", "float", "bool", "null", "timestamp", "value", "merge"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The line of every path of one file."""

    source: str
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """Give the line of a path, or of the nearest thing around it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def at(self, *path: str | int) -> str:
        """Give ``file:line`` of a path."""
        return f"{self.source}:{self.line(path)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A file's content, where each part of it stands, and what was wrong with it."""

    data: Any
    places: Places
    problems: list[Problem]


def parse(text: str, source: str) -> Document:
    """Parse YAML text. Problems come back beside whatever could be read; ``data`` is None when nothing could."""
    builder = _Builder()
    node = compose(text)
    if isinstance(node, Problem):
        builder.problems.append(node)
        data = None
    else:
        data = builder.build_root(node)
    return Document(data=data, places=Places(source=source, lines=builder.lines), problems=builder.problems)


@dataclass(slots=True)
class _Builder:
    """Walks the node graph once and keeps lines and problems."""

    lines: dict[Path, int] = field(default_factory=dict)
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

    def _build(self, node: yaml.Node, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            if self._nodes == MOST_NODES + 1:
                self._refuse(node, path, f"aliases blow the file up to more than {MOST_NODES} values")
            return None
        if any(node is one for one in self._above) or len(self._above) > DEEPEST:
            self._refuse(node, path, "an alias contains itself, or nests too deeply")
            return None
        self._above.append(node)
        try:
            return self._build_kind(node, path)
        finally:
            self._above.pop()

    def _build_kind(self, node: yaml.Node, path: Path) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG_PREFIX + "map":
            return self._build_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG_PREFIX + "seq":
            return self._build_list(node, path)
        if isinstance(node, yaml.ScalarNode) and node.tag.removeprefix(_TAG_PREFIX) in _SCALARS:
            return self._build_scalar(node, path)
        self._refuse(node, path, f"the tag {quote(node.tag.removeprefix(_TAG_PREFIX))} is not used here")
        return None

    def _build_list(self, node: yaml.SequenceNode, path: Path) -> list[Any]:
        items = []
        for index, child in enumerate(node.value):
            self.lines[(*path, index)] = _line(child)
            items.append(self._build(child, (*path, index)))
        return items

    def _build_mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        own: set[str] = set()
        for name, key, child in self._entries(node, path, own):
            here = (*path, name)
            self.lines[here] = _line(key)
            result[name] = self._build(child, here)
        return result

    def _entries(
        self, node: yaml.MappingNode, path: Path, seen: set[str]
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield a mapping's own entries, then those merged in that it does not have itself."""
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
                self._refuse(key, (*path, name), f"stands here twice (first on line {lines[name]})")
                continue
            lines[name] = _line(key)
            if name not in seen:
                yield name, key, child
        seen.update(lines)
        for other in merged:
            yield from self._merge(other, path, seen)

    def _merge(self, node: yaml.MappingNode, path: Path, seen: set[str]) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        if any(node is one for one in self._above) or len(self._above) > DEEPEST:
            self._refuse(node, path, "an alias contains itself, or nests too deeply")
            return
        self._above.append(node)
        try:
            yield from list(self._entries(node, path, seen))
        finally:
            self._above.pop()

    def _merged(self, node: yaml.Node, path: Path) -> list[yaml.MappingNode]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        mappings = [one for one in nodes if isinstance(one, yaml.MappingNode)]
        if len(mappings) != len(nodes):
            self._refuse(node, path, "<< merges mappings only")
        self._nodes += sum(len(one.value) for one in mappings)
        return mappings if self._nodes <= MOST_NODES else []

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._refuse(node, path, "a key must be text")
            return None
        return self._text(node, path)

    def _build_scalar(self, node: yaml.ScalarNode, path: Path) -> str | None:
        return None if node.tag == _NULL else self._text(node, path)

    def _text(self, node: yaml.ScalarNode, path: Path) -> str | None:
        text = unveil(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(node, path, "holds half of a character (a lone surrogate)")
            return None
        return text

    def _refuse(self, node: yaml.Node, path: Path, message: str) -> None:
        self.problems.append(Problem(line=_line(node), path=path, message=message))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
