"""The floor of the streamer: asyncio and aiosqlite, one WAL file, and a FIFO to sleep at.

`floor_reader.py [--anyio] DATABASE FIFO`: says in the table `readers` that it is there; at each ring prints the rows of
`lines` that it has not printed. `--anyio`: the same under anyio.
"""

import asyncio
import os
import sys

import aiosqlite

SCHEMA = """
CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS readers (pid INTEGER PRIMARY KEY);
"""


async def serve(database: str, fifo: str) -> None:
    rung = asyncio.Event()
    descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)

    def on_ring() -> None:
        os.read(descriptor, 4096)
        rung.set()

    asyncio.get_running_loop().add_reader(descriptor, on_ring)
    async with aiosqlite.connect(database, isolation_level=None) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.executescript(SCHEMA)
        await connection.execute("INSERT INTO readers (pid) VALUES (?)", (os.getpid(),))
        printed = 0
        while True:
            rows = await connection.execute_fetchall("SELECT id, text FROM lines WHERE id > ?", (printed,))
            for row_id, text in rows:
                print(text, flush=True)
                printed = row_id
            await rung.wait()
            rung.clear()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--anyio":
        import anyio

        anyio.run(serve, *arguments[1:])
    else:
        asyncio.run(serve(*arguments))
