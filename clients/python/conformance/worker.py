"""Runs the duties that are placed on it and writes down what it is told of each, until its standard input ends.

``worker.py SIDECAR NODE FILE``: a history for each duty, in ``FILE.DUTY``.
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from incumbent import Duty, Problem, Sidecar, Unreachable  # noqa: E402
from incumbent._trust import now  # noqa: E402

sidecar, node, file = Sidecar(sys.argv[1]), sys.argv[2], sys.argv[3]
over = threading.Event()


def work(duty: Duty) -> None:
    with open(f"{file}.{duty.name}", "a", buffering=1) as log:
        log.write(f"elected {now()} {duty.term}\n")
        print(duty.name, duty.term, flush=True)
        trusted = 0  # Until when the last yes was true.
        while True:
            before = now()
            held, until = duty.is_held(), duty._trust.until()
            log.write(f"asked {before} {now()} {duty.term} {int(held)} {until}\n")
            if not held:
                break
            trusted = until
            time.sleep(0.005)
        at = now()
        log.write(f"lost {at} {duty.term} {int(at >= trusted)}\n")


def listen() -> None:
    sys.stdin.read()
    over.set()


threading.Thread(target=listen, daemon=True).start()
while not over.is_set():
    try:
        with sidecar.serve("work", work, node, ["a", "b", "c", "d"], ttl="3s", grace="1s") as serving:
            while not over.is_set() and not serving._ended.wait(0.05):
                pass
    except (Problem, Unreachable):
        pass
    time.sleep(0.05)
