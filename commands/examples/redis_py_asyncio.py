# redis-py, asyncio: one UPDATE under a lock. Run: python redis_py_asyncio.py 127.0.0.1:7379
import asyncio, sqlite3, sys
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def update(fence):
    with sqlite3.connect(":memory:") as db:  # yours; the resource keeps the largest fence beside its data
        db.executescript("CREATE TABLE invoices (id, state, fence); INSERT INTO invoices VALUES (7, 'open', 0)")
        return db.execute("UPDATE invoices SET state = 'sent', fence = :fence "
                          "WHERE id = 7 AND fence <= :fence", {"fence": fence}).rowcount


async def main(host, port):
    # HOLD needs one connection that is never opened anew. Its read timeout (70 s) is longer than the WAIT (60 s).
    async with redis.asyncio.Redis(host=host, port=int(port), socket_timeout=70, single_connection_client=True,
                                   retry=Retry(NoBackoff(), 0), decode_responses=True) as locks:
        granted = await locks.execute_command("DLOCK", "invoice:7", 30000, "WAIT", 60000, "HOLD", 600000)
        if granted is None:
            raise SystemExit("another client still holds the lock")
        token, validity, fence = granted
        try:
            print(f"granted fence {fence}, validity {validity} ms")
            sent = asyncio.get_running_loop().time()
            validity = await locks.execute_command("DEXTEND", "invoice:7", token, 30000)  # confirms it after a WAIT
            if validity is None:
                raise SystemExit("the lock was lost")
            print(f"confirmed validity {validity} ms")
            async with asyncio.timeout_at(sent + validity / 1000):  # longer work sends DEXTEND again before this time
                changed = await asyncio.to_thread(update, fence)
            if changed == 0:
                raise SystemExit("a later holder has already written")
            print(f"update {changed} row with fence {fence}")
        finally:
            if await locks.execute_command("DUNLOCK", "invoice:7", token) != 1:
                raise SystemExit("the lock was over before its release")
            print("released 1")

asyncio.run(main(*(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7379").rsplit(":", 1)))
