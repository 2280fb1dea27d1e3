"""The databases that other tests get: fresh, empty or a copy, and gone afterwards."""

import uuid

import asyncpg
import pytest
from support.stores.postgres import create_database, drop_database, execute, fetch


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_has_an_empty_database(database_url, turn):
    execute(database_url, "CREATE TABLE only_mine (n integer)")
    assert fetch(database_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0] == 1


async def test_a_database_is_there_for_async_tests_too(database_url):
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SHOW server_encoding") == "UTF8"
    await connection.close()


def test_a_copy_of_a_template_has_its_rows_and_is_another_database(postgres_server, database_url):
    execute(database_url, "CREATE TABLE kept AS SELECT 7 AS n")
    name = f"copy_{uuid.uuid4().hex[:12]}"
    copy = create_database(postgres_server, name, template=database_url.rpartition("/")[2])
    try:
        execute(copy, "UPDATE kept SET n = 8")
        assert fetch(copy, "SELECT n FROM kept")[0]["n"] == 8
        assert fetch(database_url, "SELECT n FROM kept")[0]["n"] == 7
    finally:
        drop_database(postgres_server, name)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        fetch(copy, "SELECT 1")
