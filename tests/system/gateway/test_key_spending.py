"""What `biasmeter key list` says of the money that keys have spent."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers.product import Product, installation, settings
from support.stores.postgres import execute


@pytest.fixture
def unserved(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    """An installation of which nothing runs."""
    with installation(tmp_path, settings("http://127.0.0.1:9/v1"), migrated_url) as made:
        yield made


def spend(product: Product, key_id: str, nano_usd: int) -> None:
    assert product.database_url is not None
    row = f"INSERT INTO key_spending VALUES ('{key_id}', '{uuid.uuid4()}', {nano_usd}, now())"
    execute(product.database_url, row)


def test_what_a_key_has_spent_is_listed_over_all_ledgers_and_nothing_is_said_without_a_budget(
    unserved: Product,
) -> None:
    spender, saver, free = (unserved.create_key(*options)[0] for options in (["--budget", "5"], ["--budget", "1"], []))
    for nano_usd in (1_500_000_000, 12_345_678):
        spend(unserved, spender, nano_usd)
    listed = json.loads(unserved.run("key", "list", "-c", str(unserved.config), "--json").stdout)
    spent = {line["id"]: line["spent_usd"] for line in listed}
    assert spent == {spender: 1.512345678, saver: 0.0, free: None}
    unserved.environment["COLUMNS"] = "200"
    shown = unserved.run("key", "list", "-c", str(unserved.config)).stdout.splitlines()
    column = shown[0].index("spent")
    assert {line.split()[0]: line[column:].split()[0] for line in shown[1:]} == {
        spender: "1.5123", saver: "0.0000", free: "-"
    }  # fmt: skip


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "3e9", "much"])
def test_a_budget_is_an_amount_of_money(unserved: Product, budget: str) -> None:
    done = unserved.run("key", "create", "-c", str(unserved.config), "--name", "n", "--budget", budget, check=False)
    assert done.returncode == 2
    assert "--budget" in done.stderr
