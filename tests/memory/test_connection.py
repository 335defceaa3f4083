import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlite_utils import Database

from kernelarc.guard.errors import BoardBusy, BoardError, BoardSchemaMismatch
from kernelarc.memory import connection, migrations, open_archive
from kernelarc.memory.connection import Store, insert

TABLES = {
    "agents",
    "benchmarks",
    "events",
    "insight_evidence",
    "insights",
    "instances",
    "jobs",
    "problems",
    "promotions",
    "registrations",
    "runs",
    "solution_sources",
    "solutions",
    "sources",
    "submission_parents",
    "submissions",
    "verdicts",
}
EVENT = {"kind": "x", "payload": "{}", "created_at": 0.0}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "new" / "archive.db")
    yield made
    made.close()


def _open(path):
    conn = sqlite3.connect(path, isolation_level=None)
    return Database(conn, execute_plugins=False)


def test_an_empty_file_is_brought_to_the_newest_version(store):
    with store.read() as db:
        assert migrations.version(db) == len(migrations.STEPS)
        assert set(db.table_names()) >= TABLES
        versions = [row["version"] for row in db["migrations"].rows]
        assert versions == list(range(1, len(migrations.STEPS) + 1))


def test_every_connection_is_durable_and_checks_foreign_keys(store):
    with store.read() as db:
        pragmas = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


def test_a_file_of_version_1_keeps_its_rows_and_gets_the_board(tmp_path):
    path = tmp_path / "old.db"
    db = _open(path)
    migrations.migrate(db, target=1)
    assert "insights" not in db.table_names()
    run = insert(db, "runs", {"spec": "{}", "state": "running", "reason": "", "started_at": 1.0})
    db.conn.close()
    with open_archive(path) as archive:
        assert archive.runs.run(f"r_{run}").started_at == 1.0
        agent = archive.runs.ensure_agent("local")
        with archive._store.write() as db:
            insert(
                db,
                "problems",
                {"name": "p", "digest": "d", "title": "", "category": "", "registered_at": 0.0},
            )
            insert(db, "registrations", {"name": "p", "problem_id": 1, "registered_at": 0.0})
        archive.board.post(
            "p", "question", "s", "does it search?", agent=agent.id, device_name="cpu"
        )
        assert len(archive.board.read("p", query="searching").insights) == 1


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "new.db"
    db = _open(path)
    db.execute("PRAGMA user_version = 99")
    with pytest.raises(BoardSchemaMismatch, match="version 99, this program knows up to 3"):
        open_archive(path)
    assert db.table_names() == []
    db.conn.close()


def test_a_migration_that_fails_leaves_the_version_before(tmp_path, monkeypatch):
    def broken(db):
        db.execute("CREATE TABLE half (id INTEGER)")
        raise RuntimeError("broken step")

    db = _open(tmp_path / "archive.db")
    migrations.migrate(db, target=1)
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, broken))
    with pytest.raises(RuntimeError, match="broken step"):
        migrations.migrate(db, target=len(migrations.STEPS))
    assert migrations.version(db) == 1
    assert not {"half", "insights"} & set(db.table_names())
    db.conn.close()


def test_many_threads_may_open_a_new_file_at_once(tmp_path):
    path = tmp_path / "archive.db"
    start = threading.Barrier(8)

    def open_one(_):
        start.wait()
        with open_archive(path) as archive:
            return archive.runs.ensure_agent("local").id

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(open_one, range(8))) == {"a_1"}


def test_what_is_no_database_is_refused(tmp_path):
    path = tmp_path / "text.db"
    path.write_text("not a database, but long enough to have a header\n" * 20)
    with pytest.raises(BoardError, match="not a database"):
        open_archive(path)
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(BoardError, match="unable to open"):
        open_archive(tmp_path / "folder.db")
    with pytest.raises(BoardError, match="cannot be opened"):
        open_archive(path / "below" / "archive.db")


def test_a_transaction_that_raises_writes_nothing(store):
    def halfway():
        with store.write() as db:
            insert(db, "events", EVENT)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        halfway()
    with store.read() as db:
        assert db["events"].count == 0


def test_a_reader_sees_one_state_while_others_write(store):
    with store.read() as reader:
        before = reader["events"].count
        with store.write() as writer:
            insert(writer, "events", EVENT)
        assert reader["events"].count == before
    with store.read() as reader:
        assert reader["events"].count == before + 1


def test_a_lock_held_for_too_long_is_reported_as_busy(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 1)
    store = Store(tmp_path / "archive.db")
    with store.write() as db:
        insert(db, "events", EVENT)
        with pytest.raises(BoardBusy, match="nothing was written"), store.write():
            pytest.fail("two writers at once")
    with store.read() as db:
        assert db["events"].count == 1
    store.close()


def test_a_violated_constraint_is_a_defect_not_a_state_of_the_board(store):
    with pytest.raises(sqlite3.IntegrityError), store.write() as db:
        insert(db, "events", EVENT | {"run_id": 77})


def test_a_closed_archive_says_so(store):
    store.close()
    with pytest.raises(BoardError, match="closed"), store.read():
        pytest.fail("read from a closed archive")


def test_a_transaction_under_way_ends_although_the_archive_was_closed(store):
    with store.write() as db:
        store.close()
        insert(db, "events", EVENT)
    again = Store(store.path)
    with again.read() as db:
        assert db["events"].count == 1
    again.close()


def test_threads_share_connections_instead_of_opening_one_each(store):
    def write(_):
        with store.write() as db:
            return insert(db, "events", EVENT)

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(write, range(100)))
    assert sorted(numbers) == list(range(1, 101))
    assert len(store._idle) <= 4
