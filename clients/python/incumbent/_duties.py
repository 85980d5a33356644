"""Duties of a family that run in this process while its node was chosen for them."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict

from ._hold import Held
from ._http import Address, Problem, Unreachable


class Duty(Held):
    """One duty that runs here, under a term of its own."""

    def __init__(self, address: Address, family: str, name: str) -> None:
        super().__init__(address, f"{family}/{name}")
        self.name = name
        self._done = threading.Event()


class Serving:
    """A process that serves a family. Made by :meth:`Sidecar.serve`."""

    def __init__(self, address: Address, family: str, body: Any, work: Callable[[Duty], None]) -> None:
        self._address, self.family, self._work = address, family, work
        self._running: Dict[str, Duty] = {}
        self._ended = threading.Event()
        self._closing, self._starting = False, threading.Lock()
        self._stream = address.send("POST", f"/v1/families/{family}/serve", body, timeout=30.0)
        first = self._stream.line()
        if first is None:
            raise Unreachable(f"the stream of {family!r} ended before it began")
        self.id = first["hold"]
        self._ttl, self._every = first["ttl_ms"] / 1000, first["renew_ms"] / 1000
        threading.Thread(target=self._read, name=f"incumbent-{family}", daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def running(self) -> Dict[str, Duty]:
        """The duties that run here now, by name."""
        return {duty.name: duty for duty in list(self._running.values())}

    def close(self) -> None:
        """Ends all duties here, waits until the work of each has ended, and leaves."""
        with self._starting:
            self._closing = True
        running = list(self._running.values())
        for duty in running:
            duty._stop("released")
        for duty in running:
            duty._done.wait()  # Whoever leaves says that nothing runs any more.
        self._ended.set()
        try:
            self._address.ask("DELETE", f"/v1/holds/{self.id}")
        except (Problem, Unreachable):
            pass  # What runs here is free once the trust that was told has run out.
        self._stream.close()

    def wait(self) -> None:
        """Waits until this process serves no longer."""
        self._ended.wait()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        while (line := self._stream.line(self._ttl)) is not None:
            event, run = line.get("event"), line.get("run", "")
            if event == "prepare":
                self._report(self.id, {"state": "prepared", "duty": line["duty"]})
            elif event == "start":
                self._start(run, line)
            elif event in ("stop", "abort") and run in self._running:
                if event == "abort":
                    self._running[run]._trust.end()
                self._running[run]._stop(line.get("why"))
            elif event == "lost":
                break
        for duty in list(self._running.values()):
            duty._stop("cannot-tell")
        self._ended.set()

    def _start(self, run: str, line: Any) -> None:
        with self._starting:
            if self._closing:
                return
            duty = self._running[run] = Duty(self._address, self.family, line["duty"])
        threading.Thread(target=self._run, args=(duty, line), daemon=True).start()

    def _run(self, duty: Duty, line: Any) -> None:
        outcome = {"state": "stopped"}
        try:
            duty._begin(line, line["run"])
            self._report(duty.id, {"state": "started"})
            self._work(duty)
        except Exception as error:  # The work's own: the cluster counts it and may place it elsewhere.
            outcome = {"state": "failed", "error": f"{type(error).__name__}: {error}"[:500]}
        finally:
            duty._trust.end()
            self._report(line["run"], outcome)
            self._running.pop(line["run"], None)
            duty._done.set()

    def _beat(self) -> None:
        while not self._ended.wait(self._every):
            for held in [self, *self._running.values()]:
                try:
                    if held is not self and not held._trust.by_file:
                        held._ask_trust()
                    elif held is self and self._address.path is None:
                        self._address.ask("PUT", f"/v1/holds/{self.id}", {"nonce": ""})
                except (Problem, Unreachable):
                    pass  # Trust runs out by itself if this goes on.

    def _report(self, identity: str, state: Any) -> None:
        try:
            self._address.ask("POST", f"/v1/holds/{identity}/report", state)
        except (Problem, Unreachable):
            pass  # The stream, or the end of trust, tells the rest.
