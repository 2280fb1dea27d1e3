"""One public class to a name, and no two modules of a package that only an ending tells apart."""

from itertools import combinations, takewhile

from support.architecture.structure import product

PRODUCT = product()
ENDINGS = {
    *("", "e", "s", "es", "d", "ed", "er", "ers", "or", "ing", "ings", "ment", "ments", "ison", "isons"),
    *("ion", "ions", "ation", "ations", "y", "ies", "al", "able"),
}
#: Shorter words are too short to be one word in two forms: `coding` and `config`.
STEM = 3


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
