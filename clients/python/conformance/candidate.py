"""Stands for a lease and writes down what it is told, until its standard input ends.

``candidate.py SIDECAR NODE FILE``. ``resign`` on its standard input makes it give the lease up and stand again;
``fork`` makes a child ask too, which has to be told no.
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from incumbent import Hold, Problem, Sidecar, Unreachable  # noqa: E402
from incumbent._trust import now  # noqa: E402

sidecar, node, file = Sidecar(sys.argv[1]), sys.argv[2], sys.argv[3]
orders, over = [], threading.Event()
log = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)


def note(line: str) -> None:
    os.write(log, f"{line}\n".encode())


def listen() -> None:
    for line in sys.stdin:
        orders.append(line.strip())
    over.set()
    time.sleep(2.0)  # Who still waits for the lease has nothing to give back.
    os._exit(0)


def ask(hold: Hold) -> int:
    """Until when it is trusted, as far as is known; 0 if not."""
    before = now()
    held, until = hold.is_held(), hold._trust.until()
    note(f"asked {before} {now()} {hold.term} {int(held)} {until}")
    return until if held else 0


def stand() -> None:
    with sidecar.hold("lease", name=node, ttl="3s", grace="1s") as hold:
        note(f"elected {now()} {hold.term}")
        print(hold.term, flush=True)
        trusted = 0  # Until when the last yes was true.
        while until := ask(hold):
            trusted = until
            if over.is_set():
                break
            order = orders.pop(0) if orders else ""
            if order == "resign":
                break
            if order == "fork" and os.fork() == 0:
                if hold.is_held():
                    note("a forked child trusted")  # No history has such a line: reading it fails.
                os._exit(0)
            time.sleep(0.005)
        at = now()
        note(f"lost {at} {hold.term} {int(at >= trusted)}")


threading.Thread(target=listen, daemon=True).start()
while not over.is_set():
    try:
        stand()
    except (Problem, Unreachable):
        pass
    time.sleep(0.05)
