"""Domains of Relative Bias and their question packs: shipped ones, and one's own in files.

``configured_domain`` gives what a ``peers`` entry of the configuration describes. docs/domains.md has the data card of
the shipped packs and the format of the files.
"""

from auditor.peers.domains.domain import PLACEHOLDERS, Domain, PeerQuestion
from auditor.peers.domains.pack import Pack, read_pack
from auditor.peers.domains.shipped import SHIPPED, configured_domain, own_domain, shipped_domain

__all__ = [
    "PLACEHOLDERS",
    "SHIPPED",
    "Domain",
    "Pack",
    "PeerQuestion",
    "configured_domain",
    "own_domain",
    "read_pack",
    "shipped_domain",
]
