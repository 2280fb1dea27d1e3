"""One public class to a name, no two modules of a package that only an ending tells apart, no names without meaning."""

import ast
import re
from collections.abc import Iterator
from itertools import combinations, takewhile

from support.architecture.structure import module_name, product
from support.paths import ROOT

PRODUCT = product()
ENDINGS = {
    *("", "e", "s", "es", "d", "ed", "er", "ers", "or", "ing", "ings", "ment", "ments", "ison", "isons"),
    *("ion", "ions", "ation", "ations", "y", "ies", "al", "able"),
}
#: Shorter words are too short to be one word in two forms: `coding` and `config`.
STEM = 3
#: They do not tell what a value is.
VAGUE = {"one", "found", "given", "asked", "told", "said", "own"}
#: Modules whose fields are the keys of documents and of the configuration.
FORMATS = re.compile(r"auditor\.(config|documents)\b|.*\.document$")


def only_an_ending_apart(first: str, second: str) -> bool:
    """Return whether two names are the same word in two forms, such as `record` and `recorder`."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    # The longest shared beginning may hold the first letters of both endings: compar|ed, compar|ison.
    return any({first[cut:], second[cut:]} <= ENDINGS for cut in range(STEM, shared + 1))


def test_the_rule_knows_the_pairs_that_it_was_made_for() -> None:
    pairs = [("ship", "shipment"), ("pick", "picking"), ("record", "recorder"), ("compared", "comparison")]
    assert all(only_an_ending_apart(*pair) for pair in pairs)
    assert not only_an_ending_apart("counting", "coding")
    assert not only_an_ending_apart("report", "repair")


def test_a_public_class_name_exists_once() -> None:
    assert PRODUCT.repeated_class_names() == {}


def test_no_two_modules_of_a_package_differ_by_an_ending_only() -> None:
    names: dict[str, set[str]] = {}
    for module in PRODUCT.paths:
        package, _, name = module.rpartition(".")
        names.setdefault(package, set()).add(name)
    alike = {
        (package, *pair)
        for package, members in names.items()
        for pair in combinations(sorted(members), 2)
        if only_an_ending_apart(*pair)
    }
    assert alike == set()


def test_imports_never_run_in_a_circle_or_against_the_layers() -> None:
    """Imports inside functions count as well; the import contracts see only some of them."""
    assert PRODUCT.cycle() == []
    assert PRODUCT.against_layers() == []


def vague_names(tree: ast.Module, *, with_fields: bool) -> Iterator[tuple[str, int]]:
    """Yield parameters and class fields whose name does not tell what they hold, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in VAGUE:
            yield node.arg, node.lineno
        if isinstance(node, ast.ClassDef) and with_fields:
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id in VAGUE:
                    yield field.target.id, field.lineno


def test_the_rule_finds_parameters_and_fields() -> None:
    tree = ast.parse(
        "def choose(first, *given, found=None): return lambda one: one\n"
        "class Plan:\n"
        "    asked: int = 0\n"
        "    def method(self, told): own = told\n"
    )
    assert sorted(vague_names(tree, with_fields=True)) == [
        ("asked", 3), ("found", 1), ("given", 1), ("one", 1), ("told", 4),
    ]  # fmt: skip
    assert ("asked", 3) not in vague_names(tree, with_fields=False)
    assert FORMATS.match("auditor.documents.deployments")
    assert FORMATS.match("auditor.peers.document")
    assert not FORMATS.match("auditor.store.documents")


def test_parameters_and_fields_are_named_for_what_they_hold() -> None:
    website = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "website").rglob("*.py")}
    trees = PRODUCT.trees | {module_name(path.relative_to(ROOT)): tree for path, tree in website.items()}
    vague = [
        f"{name} in {module}:{line}"
        for module, tree in sorted(trees.items())
        for name, line in vague_names(tree, with_fields=FORMATS.match(module) is None)
    ]
    assert vague == []
