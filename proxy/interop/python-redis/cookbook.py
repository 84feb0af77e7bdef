# Plays recipe NUMBER of commands/COOKBOOK.md with the daemon whose address is the second argument:
# as one or more processes, beside a client of its own. What it asserts is what the recipe promises.
import os, pathlib, re, subprocess, sys, time
import redis

number, address = int(sys.argv[1]), sys.argv[2]
host, port = address.rsplit(":", 1)
page = (pathlib.Path(__file__).parents[3] / "commands" / "COOKBOOK.md").read_text()
recipe = page.split(f"\n## {number}. ")[1].split("```python\n")[1].split("```")[0].replace("port=7379", f"port={port}")
locks = redis.Redis(host, int(port), retry=None, socket_timeout=70, decode_responses=True)
running = []


def start(*arguments, program=recipe):
    process = subprocess.Popen([sys.executable, "-B", "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    running.append(process)
    return process


def line(process):
    return process.stdout.readline().strip()


def fence(text):
    return int(re.fullmatch(r".* with fence (\d{16,})", text)[1])


def waiting(key, clients):
    while len(locks.execute_command("DWAITERS", key)) < clients:  # the driver's limit ends it
        time.sleep(0.02)


def lock(key, *options):
    return locks.execute_command("DLOCK", key, 60000, *options)[0]


def unlock(key, token):
    assert locks.execute_command("DUNLOCK", key, token) == 1


def cron():
    assert fence(line(start()))
    running[0].wait()
    late = start()
    assert line(late) == "another machine runs it" and late.wait() == 1


def leader():
    first = start()
    before = fence(line(first))
    second = start()
    waiting("leader", 1)
    first.kill()
    assert fence(line(second)) > before
    assert locks.execute_command("DFORCE", "leader") == 1
    assert line(second) == "leads no longer"


def customer():
    token = lock("customer:7")
    busy = start()
    waiting("customer:7", 1)
    unlock("customer:7", token)
    assert fence(line(busy)) and busy.wait() == 0


def limit():
    tokens = [lock("payments", "LIMIT", 2) for _ in range(2)]
    third = start()
    waiting("payments", 1)
    unlock("payments", tokens[0])
    assert line(third) == "calls" and third.wait() == 0
    unlock("payments", tokens[1])


def readers():
    token = lock("catalog", "SHARED")
    assert fence(line(start("read")))
    writer = start("write")
    waiting("catalog", 1)
    unlock("catalog", token)
    assert line(writer).startswith("writes with fence ") and writer.wait() == 0


def queue():
    token = lock("printer")
    out, into = os.pipe()
    for i in range(3):
        program = recipe.replace('"prints"', f'"job {i} prints"')
        running.append(subprocess.Popen([sys.executable, "-B", "-c", program], stdout=into))
        waiting("printer", i + 1)
    os.close(into)
    unlock("printer", token)
    assert open(out).read().splitlines() == [f"job {i} prints" for i in range(3)]


def ids():
    one = re.fullmatch(r"order (\d+) and a block (\d+) to (\d+)", line(start()))
    two = re.fullmatch(r"order (\d+) and a block (\d+) to (\d+)", line(start()))
    assert int(one[1]) < int(one[2]) and int(one[3]) == int(one[2]) + 99 and int(one[3]) < int(two[1])


def job():
    failing = recipe.replace('f"s3://', '1 / 0 if attempt == 1 else f"s3://')
    assert failing != recipe
    first = start(program=failing)
    assert line(first) == "attempt 1 failed: division by zero"
    want = "result s3://reports/2026-11?attempt=2"
    assert line(first) == want and line(start()) == want


try:
    [cron, leader, customer, limit, readers, queue, ids, job][number - 1]()
    print(f"recipe {number} keeps its promise")
finally:
    for process in running:
        process.kill()
