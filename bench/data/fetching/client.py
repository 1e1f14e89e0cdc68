"""HTTP requests for files: which addresses are followed, how long is waited, and a reason for every failure.

requests follows redirects and knows proxies, certificates and passwords; urllib3 counts attempts. Never shown: user,
password and query of an address. Never followed: a redirect to anything but http and https, from https to http, or
from a public address into a private network. Addresses of the hub are those of its endpoint, which alone gets the token
(`bench.data.fetching.hub`).

A client is for one thread. Several that fetch side by side share what they know of `Hosts`.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InvalidHeader,
    MaxRetryError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import Retry

from bench.core.installed import DISTRIBUTION, version_of
from bench.core.network import CERTIFICATES, share_certificates
from bench.data.fetching import hub
from bench.data.fetching.records import public_url

_BLOCK = 1 << 18
_DIGITS = 18  # of a length; int() refuses thousands of them
_RETRIED = frozenset({408, 425, 429, *range(500, 600)})
_ACCEPTED = (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
_HEADERS = {
    "User-Agent": f"{DISTRIBUTION}/{version_of(DISTRIBUTION) or 'unknown'}",
    "Accept-Encoding": "identity",  # a checksum holds for the file as it is, not for what a server makes of it
}


@dataclass(frozen=True)
class RetryPolicy:
    """How long is waited, and how often a request is repeated."""

    connect: float = 15.0  # seconds for a connection
    read: float = 60.0  # seconds without a byte after which an answer has stalled
    slowest: float = 1024.0  # bytes a second; an answer slower than that for `read` seconds has stalled too
    attempts: int = 5  # at one address without getting any further, at least one
    first: float = 1.0  # seconds before the second attempt; every further wait is twice as long
    longest: float = 60.0  # seconds; no wait is longer, whatever the server asks for
    redirects: int = 10  # followed at most
    sleep: Callable[[float], None] = time.sleep  # waits so many seconds


class AddressError(Exception):
    """An address that did not give the file.

    `reason` continues a sentence, `retry` says to try once more, `status` is that of the answer, 0 without one.
    """

    def __init__(self, reason: str, *, retry: bool = False, status: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.retry, self.status = reason, retry, status


@dataclass
class Hosts:
    """What clients side by side know of hosts: which were given up, and which want to be left alone until when."""

    unreachable: set[str] = field(default_factory=set)
    _pauses: dict[str, float] = field(default_factory=dict)  # by the clock that only goes forward
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def paused(self, host: str, seconds: float) -> Iterator[None]:
        """Let no client begin to ask a host for so long, or for as long as the block lasts if that is shorter."""
        until = time.monotonic() + seconds
        with self._lock:
            self._pauses[host] = max(until, self._pauses.get(host, 0.0))
        try:
            yield
        finally:
            with self._lock:
                if self._pauses.get(host) == until:
                    del self._pauses[host]

    def await_turn(self, host: str, sleep: Callable[[float], None]) -> None:
        """Wait as long as a host wants to be left alone."""
        while (left := self._pauses.get(host, 0.0) - time.monotonic()) > 0:
            sleep(left)


class _Bearer(AuthBase):
    """The token of the hub; requests takes it off again where a redirect leads to another host."""

    def __init__(self, header: str) -> None:
        self._header = header

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add it to a request."""
        request.headers["Authorization"] = self._header
        return request


class _Session(requests.Session):
    """A session that refuses redirects that are not to be followed, and hosts that were given up."""

    def __init__(self, hosts: Hosts, sleep: Callable[[float], None]) -> None:
        super().__init__()
        self.hosts, self.sleep = hosts, sleep
        self.host = ""  # that was asked last
        self.guarded = False  # the address at hand is where a public one redirected to

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send one request, and those that redirects ask for. Raises `AddressError` for a host given up before."""
        self.host = _host(request)
        if self.host in self.hosts.unreachable:
            raise AddressError("could not be reached before")
        self.hosts.await_turn(self.host, self.sleep)
        return super().send(request, **kwargs)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where a redirect leads, None for any other answer. Raises `AddressError` if it is not followed."""
        if not resp.is_redirect:
            return None
        resp.close()  # its body is of no use, and may have no end
        try:
            target = super().get_redirect_target(resp) or ""
        except ValueError:
            raise AddressError("redirects to something that is no address") from None
        self.guarded = not _is_private(urlsplit(resp.url).hostname or "")
        return followed(resp.url, target)

    def checked(self, connected: socket.socket) -> socket.socket:
        """Return a new connection. Raises `AddressError` if it is not followed, wherever its name led before."""
        address = connected.getpeername()[0]
        if self.guarded and _is_private(address):
            connected.close()
            raise AddressError(f"redirects to {address} in a private network, which is not followed")
        return connected


class Client:
    """Sends requests. A host that could not be reached in all attempts is not asked again."""

    def __init__(self, policy: RetryPolicy | None = None, hosts: Hosts | None = None) -> None:
        share_certificates()
        self.policy = policy or RetryPolicy()
        self._session, self._adapter = _Session(hosts or Hosts(), self.policy.sleep), HTTPAdapter()
        self._adapter.poolmanager.pool_classes_by_scheme = _pools(self._session)
        self._session.max_redirects = self.policy.redirects
        self._session.headers.update(_HEADERS)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, self._adapter)
        logging.getLogger("urllib3.connectionpool").addFilter(_without_retries)

    def __enter__(self) -> Client:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close all connections."""
        self._session.close()

    def begin(self, url: str, notice: Callable[[str], None]) -> None:
        """Count attempts at an address from one again; `notice` gets a sentence before every wait."""
        self._adapter.max_retries = _attempts(self.policy, public_url(url), notice, self._session)

    def wait(self, error: AddressError) -> None:
        """Wait for another attempt, after a body that did not come whole. Raises `AddressError` if none is left."""
        try:
            self._adapter.max_retries = self._adapter.max_retries.increment("GET", error=error)
        except MaxRetryError:
            raise AddressError(f"{error.reason}{_number(self.policy)}") from error
        self._adapter.max_retries.sleep()

    def size(self, url: str) -> int | None:
        """Ask for the number of bytes at an address; None where the server does not say. One attempt."""
        self._adapter.max_retries = Retry(0)
        try:
            with self._answer("HEAD", url, {}) as answer:
                stated = offer(url, answer).size  # the hub says it before it redirects to where the bytes are
                return stated if stated is not None else length(answer) if answer.status_code == HTTPStatus.OK else None
        except AddressError:
            return None

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
        """Ask for what is at an address; the body is not read yet. Retries what may pass (see `begin`).

        Raises `AddressError` for no answer, one that is neither 200, 206 nor 416, or a redirect that is not followed.
        """
        with self._answer("GET", url, headers) as answer:
            self._adapter.max_retries = answer.raw.retries or self._adapter.max_retries
            status = answer.status_code
            if status not in _ACCEPTED:
                number = _number(self.policy) if status in _RETRIED else ""
                raise AddressError(f"answered {_status(status)}{number}{_meaning(url, answer)}", status=status)
            yield answer

    def blocks(self, answer: requests.Response) -> Iterator[bytes]:
        """Stream a body as it was sent. Raises `AddressError` where it breaks off, stalls or trickles."""
        began, count = time.monotonic(), 0
        policy = self.policy
        while True:
            try:
                # read1 returns what has come, so that a stall loses nothing
                block: bytes = answer.raw.read1(_BLOCK, decode_content=False)
            except ReadTimeoutError as error:
                raise AddressError(f"stalled: nothing came for {policy.read:g} s", retry=True) from error
            except (HTTPError, OSError) as error:
                raise AddressError("broke off", retry=True) from error
            if not block:
                return
            yield block
            count += len(block)
            passed = time.monotonic() - began
            if passed > policy.read:
                if count < policy.slowest * passed:
                    raise AddressError(f"stalled: {count:,} bytes came in {passed:.0f} s", retry=True)
                began, count = time.monotonic(), 0

    @contextmanager
    def _answer(self, verb: str, url: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
        """Yield the answer at the end of all redirects; close it at the end of the block."""
        timeout = (self.policy.connect, self.policy.read)
        self._session.guarded, auth = False, None
        if url.startswith(hub.SCHEME):
            file = hub.hub_file(url)
            if file is None:
                raise AddressError(f"is no address of the hub, which are of the form {hub.FORM}")
            url, header = file.url, hub.authorization()
            auth = _Bearer(header) if header else None
        try:
            answer = self._session.request(
                verb, url, headers=dict(headers), auth=auth, stream=True, allow_redirects=True, timeout=timeout
            )
        except requests.RequestException as error:
            raise self._failure(error) from error
        with answer:
            yield answer

    def _failure(self, error: requests.RequestException) -> AddressError:
        """Return a failure in our own words, since those of the libraries hold the whole address."""
        if isinstance(error, requests.TooManyRedirects):
            return AddressError(f"redirected more than {self.policy.redirects} times")
        if isinstance(error, requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema):
            return AddressError("is not fetched: only http and https are")
        cause = error.args[0] if error.args else None
        exhausted = isinstance(cause, MaxRetryError)
        cause = cause.reason if isinstance(cause, MaxRetryError) else cause
        if not isinstance(cause, HTTPError | OSError):
            return AddressError(f"cannot be contacted ({type(error).__name__})")
        if isinstance(cause, SSLError):
            return AddressError(_reason(cause, self.policy))
        if isinstance(error.request, requests.PreparedRequest):
            self._session.hosts.unreachable.add(_host(error.request))
        return AddressError(_reason(cause, self.policy) + (_number(self.policy) if exhausted else ""))


def length(answer: requests.Response) -> int | None:
    """Return the length of a body as its header says, None where it says none."""
    text = answer.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def offer(url: str, answer: requests.Response) -> hub.Offer:
    """Return what the hub says of a file in the answers to a request for it; nothing of other addresses."""
    file = hub.hub_file(url)
    if file is None:
        return hub.Offer()
    return hub.offer(((response.url, response.headers) for response in (*answer.history, answer)), file)


def followed(url: str, target: str) -> str:
    """Return where a redirect leads, absolute or relative to `url`. Raises `AddressError` if it is not followed."""
    try:
        destination = urljoin(url, target)
        old, new = urlsplit(url), urlsplit(destination)
        host = new.hostname if new.port is None or new.port else None
    except ValueError:
        raise AddressError("redirects to something that is no address") from None
    if new.scheme not in ("http", "https") or not host:
        raise AddressError(f"redirects to {public_url(destination)}; only http and https are followed")
    if old.scheme == "https" and new.scheme != "https":
        raise AddressError(f"redirects from https to {public_url(destination)}, which is not followed")
    if host != old.hostname and _is_private(host) and not _is_private(old.hostname or ""):
        raise AddressError(f"redirects to {public_url(destination)} in a private network, which is not followed")
    return destination


def _is_private(host: str) -> bool:
    """Return whether a host has an address that is not public; a host of unknown address has none."""
    try:
        addresses = [ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)]
    except (OSError, ValueError):
        return False
    # an IPv4 address that is mapped into IPv6 counts as what it is
    return any(not (getattr(address, "ipv4_mapped", None) or address).is_global for address in addresses)


def _pools(session: _Session) -> dict[str, type[HTTPConnectionPool]]:
    """Return kinds of connections that the session checks once they are made: a name may lead elsewhere by then."""

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return session.checked(super()._new_conn())

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return session.checked(super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _attempts(policy: RetryPolicy, address: str, notice: Callable[[str], None], session: _Session) -> Retry:
    """Return urllib3's count of attempts with our waits, each announced; what a host asks for holds for all clients."""

    class Attempts(Retry):
        def increment(
            self,
            method: str | None = None,
            url: str | None = None,
            response: Any = None,
            error: Exception | None = None,
            _pool: Any = None,
            _stacktrace: TracebackType | None = None,
        ) -> Any:
            if response is not None:
                response.close()  # its body is of no use, and may have no end
            if isinstance(error, SSLError):
                raise MaxRetryError(_pool, address, error)
            return super().increment(method, url, response, error, _pool, _stacktrace)

        def sleep(self, response: Any = None) -> None:
            last = self.history[-1]
            reason = f"answered {_status(last.status)}" if last.status else _reason(last.error, policy)
            try:
                retry_after = self.get_retry_after(response) if response is not None else None
            except (InvalidHeader, ValueError, OverflowError):  # soon, a number of 5,000 digits, a date without sense
                retry_after = None
            wait = policy.first * 2.0 ** (len(self.history) - 1)
            seconds = min(policy.longest, max(retry_after or 0.0, wait))
            notice(f"{address} {reason}; trying again in {seconds:g} s")
            with session.hosts.paused(session.host, seconds) if retry_after else nullcontext():
                policy.sleep(seconds)

    return Attempts(policy.attempts - 1, allowed_methods=None, status_forcelist=_RETRIED, raise_on_status=False)


def _reason(error: Exception | None, policy: RetryPolicy) -> str:
    if isinstance(error, AddressError):
        return error.reason
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (SSLError, f"has no certificate that is trusted here; {CERTIFICATES}"),
        (ProxyError, "could not be reached through the proxy"),
        (NewConnectionError, "could not be reached"),
        (ConnectTimeoutError, f"could not be reached in {policy.connect:g} s"),
        (ReadTimeoutError, f"did not answer in {policy.read:g} s"),
    )
    return next((words for kind, words in kinds if isinstance(error, kind)), "broke the connection off")


def _meaning(url: str, answer: requests.Response) -> str:
    """Return what a refusal of the hub means and what to type; empty of other hosts."""
    file = hub.hub_file(url)
    fault = hub.fault_of_answer(answer.status_code, answer.headers) if file else None
    if file is None or fault is None:
        return ""
    reason = hub.refusal(fault, file.repository)
    return f": {reason.found}; {reason.hint}"


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _number(policy: RetryPolicy) -> str:
    """Return how often a request was tried, in brackets."""
    return f" ({policy.attempts} attempts)" if policy.attempts > 1 else ""


def _host(request: requests.PreparedRequest) -> str:
    return urlsplit(request.url or "").netloc.rpartition("@")[2]


def _without_retries(record: logging.LogRecord) -> bool:
    """Drop urllib3's warnings of retries: they hold whole addresses, and notices say the same."""
    return not str(record.msg).startswith("Retrying")
