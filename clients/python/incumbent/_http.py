"""HTTP to the sidecar, over TCP or a Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from typing import Any, Mapping, Optional
from urllib.parse import urlsplit


class Unreachable(ConnectionError):
    """The sidecar didn't answer. Whether it did what was asked isn't known."""


class Problem(Exception):
    """The sidecar refused. ``code`` is what programs go by; ``document`` is the whole answer."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.document = document
        self.code = str(document.get("code", ""))
        super().__init__(document.get("detail") or document.get("title") or f"status {status}")


class Address:
    """Where the sidecar is: ``unix:PATH``, ``http://HOST:PORT`` or ``https://HOST:PORT``, with a prefix if it has one."""

    def __init__(self, url: str, token: Optional[str], context: Optional[ssl.SSLContext]) -> None:
        self.path = url[len("unix:") :] if url.startswith("unix:") else None
        parts = urlsplit(url if self.path is None else "http://localhost")
        if parts.scheme not in ("http", "https") or not parts.hostname or self.path == "":
            raise ValueError(f"{url!r} is not an address: use unix:PATH, http://HOST:PORT or https://HOST:PORT")
        self.secure, self.host, self.port = parts.scheme == "https", parts.hostname, parts.port
        self.prefix = parts.path.rstrip("/")
        self.token, self.context = token, context

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        if self.path is not None:
            return _UnixConnection(self.path, timeout)
        if self.secure:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def send(self, method: str, path: str, body: Any, timeout: float) -> Answer:
        """Sends one request on a connection of its own, and waits for the head of the answer."""
        connection = self.connect(timeout)
        headers = {"Accept": "application/json, application/x-ndjson"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, self.prefix + path, None if body is None else json.dumps(body), headers)
            answer = Answer(connection, connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(f"{method} {path}: {error}") from error
        if answer.status >= 400:
            raise Problem(answer.status, answer.document())
        return answer

    def ask(self, method: str, path: str, body: Any = None, timeout: float = 10.0) -> Any:
        """Sends one request, and gives back the document that answers it."""
        return self.send(method, path, body, timeout).document()


class Answer:
    """An answer whose body is read once, whole or line by line."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response
        self._socket = connection.sock
        self.status = response.status

    def document(self) -> Any:
        try:
            text = self._response.read()
            return json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"the answer can't be read: {error}") from error
        finally:
            self.close()

    def line(self, timeout: Optional[float] = None) -> Optional[Any]:
        """The next line of a stream; nothing once the stream has ended or broken."""
        try:
            if timeout is not None and self._socket is not None:
                self._socket.settimeout(timeout)
            text = self._response.readline()
            return json.loads(text) if text.endswith(b"\n") else None
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            return None  # The last is what http.client says if another thread closes the answer meanwhile.

    def close(self) -> None:
        try:
            if self._socket is not None:  # Wakes whoever reads it.
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._response.close()
        self._connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
