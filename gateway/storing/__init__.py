"""From the spool to the store, and from the store's keys to the workers."""
