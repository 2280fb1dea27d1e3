"""The processes of a gateway: a parent, its workers, and the shipper."""
