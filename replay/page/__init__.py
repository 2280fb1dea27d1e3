"""The comparison as people see it, made from ``comparison.json`` alone: a page of its own, a table on the terminal."""
