"""kazoo's election on ZooKeeper. It leads while its function runs and the session is neither suspended nor lost."""

import os
import signal
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def say(line):
    # One write a line: threads share the output.
    os.write(1, f"{line}\n".encode())


def stand(client, lease, name, ask, connected):
    def lead():
        say(f"led {now()} {lease}")
        while True:
            at = now()
            if not connected.is_set():
                break
            if ask:
                say(f"believes {at} {lease}")
            time.sleep(ask / 1000 if ask else 0.1)
        say(f"lost {now()} {lease}")

    while True:
        try:
            connected.wait()
            client.Election(f"/{lease}", name).run(lead)
        except KazooException:
            time.sleep(1)


def main():
    if len(sys.argv) != 7:
        sys.exit(f"usage: {sys.argv[0]} URL NAME LEASE TTL_MS COUNT ASK_MS")
    url, name, lease = sys.argv[1:4]
    ttl, count, ask = map(int, sys.argv[4:])
    client = KazooClient(hosts=url.removeprefix("zookeeper://"), timeout=ttl / 1000)
    connected = threading.Event()

    def listen(state):
        # What kazoo's documentation advises: a suspended session is no reason to lead on.
        if state == KazooState.CONNECTED:
            connected.set()
        else:
            connected.clear()

    client.add_listener(listen)
    client.start()
    say(f"begin {now()}")
    leases = [lease] if count == 1 else [f"{lease}-{number}" for number in range(count)]
    for each in leases:
        threading.Thread(target=stand, args=(client, each, name, ask, connected), daemon=True).start()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ended.wait()
    # Ends the session, and with it all that it holds.
    client.stop()
    client.close()
    os._exit(0)


main()
