"""What is kept and counted of exchanges: records in the spool, and series."""
