"""The processes of an installation's embedded PostgreSQL: in an environment, maybe an account, of their own."""

from support.servers.product import Product, all_pids, working_folder

from auditor.postgres.folder import StoreFolder
from auditor.postgres.home import find_home


def postgres_pids(product: Product) -> list[int]:
    """The postmaster first."""
    data = find_home(StoreFolder(product.data_dir.resolve() / "postgres")).data
    pids = [pid for pid in all_pids() if working_folder(pid) == data]
    try:
        postmaster = int((data / "postmaster.pid").read_text().split()[0])
    except (OSError, IndexError):
        return pids
    return sorted(pids, key=lambda pid: pid != postmaster)
