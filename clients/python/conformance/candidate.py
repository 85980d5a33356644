"""Stands for a lease and writes down what it is told, until its standard input ends.

``candidate.py [--to-the-end] [--by-answers] [--watchdog] SIDECAR NODE FILE``. ``resign`` on its standard input makes it give the
lease up and stand again; ``fork`` makes a child ask too, which has to be told no for as long as it lives.

With ``--to-the-end`` its work goes on for as long as trust lasts, whatever it is told and whatever becomes of its
stream. With ``--by-answers`` it uses no trust file. With ``--watchdog`` it reports progress until ``stick`` on its
standard input makes it forget to; then it has to lose the lease for that reason, and for no other. ``INCUMBENT_TEST_TLS`` names
a directory with the certificates to use: ``ca.crt``, ``client.crt`` and ``client.key``.
"""

import os
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from incumbent import Hold, Problem, Sidecar, Unreachable  # noqa: E402
from incumbent._trust import Trust, now  # noqa: E402

context = None
if place := os.environ.get("INCUMBENT_TEST_TLS"):
    context = ssl.create_default_context(cafile=f"{place}/ca.crt")
    context.load_cert_chain(f"{place}/client.crt", f"{place}/client.key")
sidecar, node, file = Sidecar(sys.argv[-3], context=context), sys.argv[-2], sys.argv[-1]
to_the_end, watched = "--to-the-end" in sys.argv, "--watchdog" in sys.argv
if "--by-answers" in sys.argv:
    Trust.map = lambda *_: None
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
    held, until = (hold.is_trusted() if to_the_end else hold.is_held()), hold._trust.until()
    note(f"asked {before} {now()} {hold.term} {int(held)} {until}")
    return until if held else 0


def live_on(hold: Hold) -> None:
    """What a forked child does. It has its parent's connection, and lives for longer than a ttl."""
    end = now() + 4_000_000_000
    while now() < end:
        if hold.is_held() or hold.is_trusted():
            note("a forked child trusted")  # No history has such a line: reading it fails.
        time.sleep(0.02)
    os._exit(0)


def report(hold: Hold) -> None:
    try:
        hold.progress()
    except (Problem, Unreachable):
        pass  # The loop finds out.


def why(hold: Hold) -> object:
    """Why it ends. The trust file may say that it does a moment before the stream says why."""
    for _ in range(200):
        if hold.why is None:
            time.sleep(0.01)
    return hold.why


def stand() -> None:
    with sidecar.hold("lease", name=node, ttl="3s", grace="1s", watchdog="2s" if watched else None) as hold:
        note(f"elected {now()} {hold.term}")
        print(hold.term, flush=True)
        trusted, stuck = 0, not watched  # Until when the last yes was true.
        while until := ask(hold):
            trusted = until
            if over.is_set():
                break
            order = orders.pop(0) if orders else ""
            if order == "resign":
                break
            if order == "fork" and os.fork() == 0:
                live_on(hold)
            stuck = stuck or order == "stick"
            if not stuck:
                report(hold)
            time.sleep(0.1 if watched else 0.005)
        at = now()
        note(f"lost {at} {hold.term} {int(at >= trusted)}")
        if watched and not over.is_set() and (why(hold) == "stuck") != stuck:
            note(f"lost because {hold.why}")  # No history has such a line.


threading.Thread(target=listen, daemon=True).start()
while not over.is_set():
    try:
        stand()
    except (Problem, Unreachable):
        pass
    time.sleep(0.05)
