"""Copies of the store's facts, codings and tallies as Parquet files, and their counts by DuckDB."""
