"""store_contents.py RUN_DB: everything in a run store but its name, dates and wall clock, one line a row."""
import sqlite3
import sys

WALL = ("id", "started_at", "updated_at", "wall_seconds")

store = sqlite3.connect(sys.argv[1])
for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
    columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
    kept = [column for column in columns if not (table == "run" and column in WALL)]
    for row in store.execute(f"SELECT {', '.join(kept)} FROM {table}"):
        print(table, *map(repr, row))
