"""The way in: what a program asks of its sidecar."""

from __future__ import annotations

import random
import ssl
import time
from typing import Any, Callable, Iterable, Mapping, Optional, Union
from urllib.parse import quote

from ._duties import Duty, Serving
from ._hold import Hold
from ._http import Address, Problem, Unreachable


class Sidecar:
    """``incumbent serve``, at ``unix:PATH``, ``http://HOST:PORT`` or ``https://HOST:PORT``.

    A Unix socket is best: the sidecar sees at once when this process is gone.
    """

    def __init__(self, url: str, token: Optional[str] = None, context: Optional[ssl.SSLContext] = None) -> None:
        self._address = Address(url, token, context)

    def hold(
        self,
        lease: str,
        name: str,
        *,
        address: Optional[str] = None,
        payload: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        wait: bool = True,
        ttl: Optional[str] = None,
        grace: Optional[str] = None,
        priority: Optional[int] = None,
        on_close: Optional[str] = None,
        watchdog: Optional[str] = None,
    ) -> Hold:
        """Stands for a lease. Use it in ``with`` or ``async with``: that waits, and frees the lease at the end.

        ``on_close="ended"`` promises that the connection is direct and that work ends before it is closed;
        ``watchdog="30s"`` that the work calls :meth:`Hold.progress` at least so often.
        """
        body = dict(name=name, address=address, payload=payload, labels=labels, wait=wait, ttl=ttl)
        body.update(grace=grace, priority=priority, on_close=on_close, watchdog=watchdog)
        path = f"/v1/leases/{quote(lease, safe='')}/hold"
        return Hold(self._address, lease, path, _given(body))

    def lead(self, lease: str, work: Callable[[Hold], None], name: str, **options: Any) -> None:
        """Runs the work whenever this process leads, until the work returns while it still leads.

        What the work raises is raised here, after the lease is freed. Losses and a sidecar that is away
        are not: this process stands again.
        """
        while True:
            try:
                with self.hold(lease, name, **options) as hold:
                    work(hold)
                    if hold.is_held():
                        return
            except Unreachable:
                pass
            except Problem as problem:
                if problem.code not in ("lost", "stopping", "too-many", "store", "held"):
                    raise
            time.sleep(random.uniform(0.1, 0.5))

    def serve(
        self,
        family: str,
        work: Callable[[Duty], None],
        name: str,
        duties: Iterable[str],
        *,
        version: Optional[str] = None,
        capacity: Optional[int] = None,
        max_duties: Optional[int] = None,
        address: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        ttl: Optional[str] = None,
        grace: Optional[str] = None,
        watchdog: Optional[str] = None,
    ) -> Serving:
        """Runs ``work(duty)`` on a thread for each duty that is placed on this process.

        ``watchdog="30s"`` promises that the work of each calls :meth:`Duty.progress` at least so often.
        """
        body = dict(name=name, duties=list(duties), version=version, capacity=capacity, max_duties=max_duties)
        body.update(address=address, labels=labels, ttl=ttl, grace=grace, watchdog=watchdog)
        return Serving(self._address, quote(family, safe=""), _given(body), work)

    def leader(self, lease: str, after: Optional[str] = None, wait: Optional[str] = None) -> Any:
        """The lease as the store shows it: ``leader``, ``term``, ``cursor``.

        With the last ``cursor`` as ``after`` and a time such as ``"30s"`` it waits until that has changed.
        """
        query = "" if after is None else f"?after={quote(after, safe='')}&wait={wait or '30s'}"
        return self._address.ask("GET", f"/v1/leases/{quote(lease, safe='')}{query}", timeout=75.0)

    def is_leader(self, lease: str) -> bool:
        """Whether a client of this sidecar holds the lease, as load balancers ask it."""
        try:
            return bool(self._address.ask("GET", f"/leader/{quote(lease, safe='')}").get("here"))
        except Problem as problem:
            if problem.status == 503:
                return False
            raise


def _given(body: Mapping[str, Union[Any, None]]) -> Any:
    return {field: value for field, value in body.items() if value is not None}
