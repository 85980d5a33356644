"""One candidacy for one lease: it waits, is elected at most once, and is over for good when it is lost."""

from __future__ import annotations

import asyncio
import secrets
import threading
from typing import Any, Optional

from ._http import Address, Problem, Unreachable
from ._trust import Trust, now


class Held:
    """What is common to a lease that is held and a duty that runs: a term, and trust in it."""

    def __init__(self, address: Address, lease: str) -> None:
        self._address = address
        self._told = threading.Event()
        self._trust = Trust()
        self.lease = lease
        self.id = ""
        #: The fencing token: hand it to whatever the work writes to.
        self.term = 0
        #: Why it ends or has ended: ``resigned``, ``shutdown``, ``cannot-tell`` and others.
        self.why: Optional[str] = None

    def is_held(self) -> bool:
        """Whether the work may go on. Asks neither the sidecar nor the store. A no is final."""
        return not self._told.is_set() and self.is_trusted()

    def is_trusted(self) -> bool:
        """Whether trust lasts, also after the work was told to end: for what it does in its grace."""
        return self.term > 0 and self._trust.lasts()

    def progress(self, text: Optional[str] = None) -> None:
        """Says that the work comes on, where ``watchdog`` promised it; ``text`` says of a duty what it is at.

        Call it from the work itself. Raises :class:`Problem` once it is over, and :class:`Unreachable`.
        """
        self._address.ask("POST", f"/v1/holds/{self.id}/progress", {} if text is None else {"text": text})

    def wait_until_stopping(self, timeout: Optional[float] = None) -> bool:
        """Waits until the work has to end; says whether it has to."""
        end = None if timeout is None else now() + int(timeout * 1e9)
        while self.is_held():
            left = self._trust.until() - now() + 1_000_000
            if end is not None:
                left = min(left, end - now())
                if left <= 0:
                    return False
            self._told.wait(left / 1e9)
        return True

    async def stopping(self) -> None:
        """Waits until the work has to end."""
        while not await asyncio.to_thread(self.wait_until_stopping, 0.5):
            pass

    def _ask_trust(self, method: str = "POST", path: str = "/trust") -> None:
        nonce, sent = secrets.token_hex(8), now()
        answer = self._address.ask(method, f"/v1/holds/{self.id}{path}", {"nonce": nonce})
        if answer.get("nonce") == nonce:
            self._trust.count(sent, int(answer.get("trusted_for_ms", 0)))

    def _begin(self, line: Any, identity: str) -> None:
        self.id = identity
        self._trust.map(line.get("trust_file"), identity, int(line["term"]))
        if not self._trust.by_file:
            self._ask_trust()
        self.term = int(line["term"])  # From now on the answer may be yes.

    def _stop(self, why: Optional[str]) -> None:
        self.why = self.why or why
        self._told.set()


class Hold(Held):
    """A lease that this process holds or waits for. Made by :meth:`Sidecar.hold`."""

    def __init__(self, address: Address, lease: str, path: str, body: Any) -> None:
        super().__init__(address, lease)
        self._elected = threading.Event()
        self._ended = threading.Event()
        self._renewing: Optional[threading.Thread] = None
        self._renew_every = 1.0
        self._stream = address.send("POST", path, body, timeout=30.0)
        threading.Thread(target=self._read, name=f"incumbent-{lease}", daemon=True).start()

    def wait(self, timeout: Optional[float] = None) -> Hold:
        """Waits until this process leads. Raises :class:`Problem` if the hold is over before that."""
        if not self._elected.wait(timeout):
            raise TimeoutError(f"{self.lease!r} wasn't had in {timeout} s; the hold still waits")
        if self.term == 0:
            raise Problem(410, {"code": "lost", "detail": f"the hold of {self.lease!r} is over: {self.why}"})
        return self

    def release(self) -> None:
        """Says that all work under the hold has ended, and frees the lease. Call it after the work, not before."""
        self._stop("released")
        self._trust.end()
        try:
            if self.id:
                self._address.ask("DELETE", f"/v1/holds/{self.id}")
        except (Problem, Unreachable):
            pass  # It is free once the trust that was told has run out.
        finally:
            self._finish()
            self._stream.close()

    def __enter__(self) -> Hold:
        try:
            return self.wait()
        except BaseException:
            self.release()
            raise

    def __exit__(self, *_: object) -> None:
        self.release()

    async def __aenter__(self) -> Hold:
        try:
            return await asyncio.to_thread(self.wait)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.release))
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(self.release))

    def _read(self) -> None:
        patience: Optional[float] = None
        while (line := self._stream.line(patience)) is not None:
            event = line.get("event")
            if event == "waiting":
                self.id = line["hold"]
                patience = line["ttl_ms"] / 1000  # A sign of life comes three times as often.
                self._renew_every = line["renew_ms"] / 1000
                if self._address.path is None:
                    self._renew()
            elif event == "elected":
                self._take(line)
            elif event == "stopping":
                self._stop(line.get("why"))
            elif event == "lost":
                self.why = line.get("why")
                self._trust.end()
                break
        self._stop("cannot-tell")  # Without a stream nobody tells us to stop.
        self._finish()

    def _take(self, line: Any) -> None:
        try:
            self._begin(line, line["hold"])
        except (Problem, Unreachable):
            return  # It goes unheard of, and comes back as lost.
        if not self._trust.by_file:
            self._renew()
        self._elected.set()

    def _renew(self) -> None:
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._beat, daemon=True)
            self._renewing.start()

    def _beat(self) -> None:
        every = self._renew_every
        while not self._ended.wait(every):
            every = self._renew_every
            try:
                self._ask_trust("PUT", "")
            except Unreachable:
                every = min(every, 1.0)
            except Problem as problem:
                if problem.code in ("lost", "no-such-hold"):
                    self._stop(problem.document.get("why"))
                    return

    def _finish(self) -> None:
        self._ended.set()
        self._elected.set()
