"""Load the domains of Relative Bias and their question packs, shipped ones or from files.

``configured_domain`` returns the domain of a ``peers`` entry of the configuration. docs/domains.md has the data card of
the shipped packs and the file format.
"""

from auditor.peers.domains.domain import PLACEHOLDERS, Domain, PeerQuestion
from auditor.peers.domains.pack import SHIPPED, Pack, configured_domain, new_domain, read_pack, shipped_domain

__all__ = [
    "PLACEHOLDERS",
    "SHIPPED",
    "Domain",
    "Pack",
    "PeerQuestion",
    "configured_domain",
    "new_domain",
    "read_pack",
    "shipped_domain",
]
