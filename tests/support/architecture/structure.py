"""Measure the structure of a checkout: sizes of modules and functions, imports between modules, names of classes.

``python -m support.architecture.structure`` prints the table of docs/architecture.md; folders as arguments are other
checkouts to measure.
"""

import ast
import gc
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

from support.paths import ROOT

#: The product's packages, and the one module that was its command line before it was a package.
PACKAGES = ("biasmeter", "tiltmeter.py", "gateway", "auditor", "replay")
#: A module this long would be hard to read after taking another one in.
FITS = 400


@dataclass(frozen=True)
class Structure:
    """The product's source in one checkout."""

    tree: Path

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Return each module's file by the module's name."""
        roots = (self.tree / package for package in PACKAGES)
        files = (file for root in roots for file in (root.rglob("*.py") if root.is_dir() else [root]) if file.is_file())
        return {module_name(file.relative_to(self.tree)): file for file in sorted(files)}

    @cached_property
    def sources(self) -> dict[str, str]:
        """Return each module's text."""
        return {name: path.read_text(encoding="utf-8") for name, path in self.paths.items()}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Return each module's syntax tree."""
        gc.disable()  # its search for cycles in what stays anyway takes four times as long as to read
        try:
            return {name: ast.parse(text) for name, text in self.sources.items()}
        finally:
            gc.freeze()
            gc.enable()

    @cached_property
    def marked_nodes(self) -> dict[str, list[ast.AST]]:
        """Return the imports and functions of each module, also inside others."""
        kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
        return {name: [node for node in ast.walk(tree) if isinstance(node, kinds)] for name, tree in self.trees.items()}

    @cached_property
    def lines(self) -> dict[str, int]:
        """Return the lines of each module, packages without content left out."""
        return {name: count for name, text in self.sources.items() if (count := len(text.splitlines()))}

    def function_lines(self) -> list[int]:
        """Return the lines of every function, its decorators and docstring left out."""
        found = []
        for nodes in self.marked_nodes.values():
            for node in nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                    found.append((node.end_lineno or 0) - body[0].lineno + 2)
        return found

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Return the modules of the product that each module imports, also inside functions."""
        return {name: set(self._imported(name, nodes)) - {name} for name, nodes in self.marked_nodes.items()}

    @cached_property
    def imports_at_start(self) -> dict[str, set[str]]:
        """Return the modules of the product that importing each module imports."""
        return {name: set(self._imported(name, _at_start(tree))) - {name} for name, tree in self.trees.items()}

    def _imported(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.paths)
            elif isinstance(node, ast.ImportFrom):
                origin = node.module or ""
                if node.level:
                    package = module if self.paths[module].stem == "__init__" else module.rpartition(".")[0]
                    parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                    origin = ".".join((*parts, *([origin] if origin else [])))
                for alias in node.names:
                    whole = f"{origin}.{alias.name}"
                    if whole in self.paths:
                        yield whole
                    elif origin in self.paths:
                        yield origin

    def cycle(self) -> list[str]:
        """Return modules that import one another in a circle, if there are any."""
        try:
            TopologicalSorter(self.imports_at_start).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def against_layers(self) -> list[tuple[str, str]]:
        """Return the imports from a lower to a higher layer of the checkout's contracts."""
        pairs = ((module, other) for module, imported in self.imports.items() for other in imported)
        return [pair for pair in pairs if self.is_upward(*pair)]

    def is_upward(self, module: str, other: str) -> bool:
        """Return whether the second module is in a higher layer than the first, in one of the contracts."""
        heights = ((_height(levels, module), _height(levels, other)) for levels in self._layers)
        return any(own is not None and theirs is not None and theirs < own for own, theirs in heights)

    @cached_property
    def _layers(self) -> list[dict[str, int]]:
        """Return the height of each module that a contract of layers names, by container; 0 is the top."""
        settings = tomllib.loads((self.tree / "pyproject.toml").read_text(encoding="utf-8"))
        return [
            {
                (f"{container}." if container else "") + name.strip(" ()"): height
                for height, layer in enumerate(contract["layers"])
                for name in re.split(r"[|:]", layer)
            }
            for contract in settings["tool"]["importlinter"]["contracts"]
            if contract["type"] == "layers"
            for container in contract.get("containers", [""])
        ]

    def one_importer(self) -> dict[str, str]:
        """Return the modules that exactly one module imports, and that one."""
        importers: dict[str, list[str]] = {}
        for module, imported in self.imports.items():
            for other in imported:
                importers.setdefault(other, []).append(module)
        return {module: found[0] for module, found in importers.items() if len(found) == 1}

    def would_fit(self) -> list[str]:
        """Return those of them that would fit into their importer, in the same package."""
        return [
            module
            for module, importer in self.one_importer().items()
            if module.rpartition(".")[0] in {importer, importer.rpartition(".")[0]}
            and self.lines.get(module, 0) + self.lines.get(importer, 0) <= FITS
        ]

    def class_names(self) -> Counter[str]:
        """Count the public classes of each name."""
        return Counter(
            node.name
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )

    def repeated_class_names(self) -> dict[str, int]:
        """Return the names of more than one public class."""
        return {name: count for name, count in self.class_names().items() if count > 1}

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the table: what is measured, and the result."""
        lines, functions = list(self.lines.values()), self.function_lines()
        repeated, single, fits = self.repeated_class_names(), self.one_importer(), self.would_fit()
        yield "modules, lines of them", f"{len(lines)}, {sum(lines):,}"
        yield "module lines: median / p90 / max", f"{median(lines):.0f} / {percentile_90(lines):.0f} / {max(lines)}"
        yield "function lines: median / p90", f"{median(functions):.0f} / {percentile_90(functions):.0f}"
        cycles = "none" if not self.cycle() else " > ".join(self.cycle())
        yield "import cycles; imports against the layers", f"{cycles}; {len(self.against_layers())}"
        yield (
            f"modules with exactly one importer; of these fit into it, same package, < {FITS} lines (lines)",
            f"{len(single)}; {len(fits)} ({sum(self.lines.get(each, 0) for each in fits):,})",
        )
        yield "public class names of more than one class (their classes)", f"{len(repeated)} ({sum(repeated.values())})"


@cache
def product() -> Structure:
    """Return this checkout's, which is parsed once in a process."""
    return Structure(ROOT)


def module_name(path: Path) -> str:
    """Return the dotted name of a file."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def percentile_90(values: Sequence[int]) -> float:
    """Return the value that nine of ten do not exceed."""
    return quantiles(values, n=10)[8]


def _at_start(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements that run at import, those for type checkers left out."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        waiting += list(ast.iter_child_nodes(node))


def _height(levels: dict[str, int], module: str) -> int | None:
    names = module.split(".")
    found = (levels.get(".".join(names[:length])) for length in range(len(names), 0, -1))
    return next((height for height in found if height is not None), None)


def table(trees: Sequence[Path]) -> str:
    """Return the table as Markdown, one column a checkout."""
    columns = [dict(Structure(tree).rows()) for tree in trees]
    head = f"| | {' | '.join(tree.resolve().name for tree in trees)} |\n|---|{'---|' * len(trees)}\n"
    return head + "".join(f"| {name} | {' | '.join(each[name] for each in columns)} |\n" for name in columns[0])


if __name__ == "__main__":
    print(table([Path(each) for each in sys.argv[1:]] or [ROOT]), end="")
