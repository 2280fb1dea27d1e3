"""What commands write is readable by their user alone, whatever it is, but for the files of a deployment."""

import stat
from pathlib import Path

from support.servers.product import Product
from support.stores.audited_store import ship
from support.stores.exchanges import full_exchange
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.rglob("*"))}


async def test_what_commands_write_is_private(product: Product) -> None:
    write_rows(product.folder / "coded.jsonl", coded_rows(oat_conditions()[:4], deployments=2, statements=4))
    await ship(str(product.database_url), [full_exchange()])
    product.environment["BIASMETER_SIGNING_KEY"] = "00" * 32
    before = set(modes(product.folder))
    for command in (
        ("analyze", "coded.jsonl", "-o", "analysis", "--n-boot", "20"),
        ("init", "-o", "made.yaml", "--base-url", "http://127.0.0.1:9/v1", "--key-env", "", "--model", "m"),
        ("export-parquet", "-o", "columns"),
        ("export-exchanges", "--select", "origin=client", "-o", "exchanges.jsonl"),
        ("verify", "--sign", "heads/head.json"),
    ):
        product.run(*command)
    with product.running("gateway"):
        pass
    made = {name: mode for name, mode in modes(product.folder).items() if name not in before and "gateway-" not in name}
    assert {"analysis/report.html", "made.yaml", "columns", "exchanges.jsonl", "heads/head.json"} <= set(made)
    assert {name: oct(mode) for name, mode in made.items() if mode & 0o077} == {}


def test_containers_of_other_users_read_the_files_of_a_deployment(product: Product) -> None:
    product.run("deploy-files", "-o", "new/deploy")
    made = modes(product.folder / "new")
    assert {mode for name, mode in made.items() if Path(name).suffix} == {0o644}
    assert made["deploy"] == made["deploy/prometheus"] == 0o755
