"""The loaders of queries and migrations, and that no query walks through what was handled long ago."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from channel import migrations, queries
from channel.migrations import load_migrations, statements
from channel.queries import load_queries

GROWS = ("messages", "deliveries", "delivery_events")


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    """The newest schema, in memory: plans need no data."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load_migrations():
            for statement in statements(migration.sql):
                connection.execute(statement)
        yield connection


@pytest.mark.fault("F42")
@pytest.mark.parametrize("name", load_queries())
def test_no_query_scans_a_table_that_grows_with_every_message(empty: sqlite3.Connection, name: str) -> None:
    query = load_queries()[name]
    aliases = {
        alias or table
        for table, alias in re.findall(r"(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?!JOIN)([a-z]+)\b)?", query)
        if table in GROWS
    } | set(GROWS)
    scanned = [step for step in plan(empty, query) if re.match(rf"SCAN ({'|'.join(aliases)})\b", step)]

    assert scanned == []


def test_the_scan_that_the_plans_are_searched_for_looks_as_the_test_thinks(empty: sqlite3.Connection) -> None:
    assert plan(empty, "SELECT * FROM deliveries d WHERE d.looks = :looks") == ["SCAN d"]
    assert plan(empty, "SELECT count(*) FROM messages")[0].startswith("SCAN messages")


def test_every_query_is_used_and_none_is_missing() -> None:
    used = set()
    for file in queries.FILE.parents[1].glob("*.py"):
        used |= set(re.findall(r'\bsql\("(\w+)"\)', file.read_text(encoding="utf-8")))

    assert used == set(load_queries())


def test_a_name_given_twice_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text("-- one: a\nSELECT 1;\n\n-- one: b\nSELECT 2;\n", encoding="utf-8")
    monkeypatch.setattr(queries, "FILE", file)

    with pytest.raises(RuntimeError, match="twice"):
        load_queries.__wrapped__()


def test_a_comment_that_reads_like_a_name_takes_no_statement_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "queries.sql"
    file.write_text("-- one: a role of the\n-- room: b\nSELECT 1;\n", encoding="utf-8")
    monkeypatch.setattr(queries, "FILE", file)

    with pytest.raises(RuntimeError, match="no statement under one"):
        load_queries.__wrapped__()


def test_the_migrations_are_numbered_without_a_gap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in (1, 3):
        (tmp_path / f"000{number}_step.sql").write_text("SELECT 1;", encoding="utf-8")
    monkeypatch.setattr(migrations, "FOLDER", tmp_path)

    with pytest.raises(RuntimeError, match="not numbered 1, 2, 3"):
        load_migrations.__wrapped__()


def test_a_script_is_cut_into_statements_and_a_trigger_stays_whole() -> None:
    script = """
-- a comment; with a semicolon
CREATE TABLE t (a TEXT DEFAULT ';');

CREATE TRIGGER g AFTER INSERT ON t BEGIN
  UPDATE t SET a = 1;
  UPDATE t SET a = 2;
END;
"""
    cut = list(statements(script))

    assert len(cut) == 2
    assert cut[0] == "CREATE TABLE t (a TEXT DEFAULT ';');"
    assert cut[1].startswith("CREATE TRIGGER") and cut[1].endswith("END;")


def test_a_script_that_ends_in_the_middle_of_a_statement_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="in the middle of a statement"):
        list(statements("CREATE TABLE t (a);\nCREATE TABLE u (b"))


def plan(connection: sqlite3.Connection, query: str) -> list[str]:
    parameters = dict.fromkeys(re.findall(r":([a-z_0-9]+)", query))
    return [
        row[3]
        for statement in statements(query if query.endswith(";") else f"{query};")
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
