"""One question to an HTTP server: which addresses are followed, how long is waited, what every failure is called.

Never shown: user, password and query of an address. Never followed: anything but http and https, and a redirect from
https to http.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from bench.data.urls import bare
from bench.installed import DISTRIBUTION, version_of

_BLOCK = 1 << 18
_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, 425}
"""Statuses below 500 that another time may not have."""
_HEADERS = {
    "User-Agent": f"{DISTRIBUTION}/{version_of(DISTRIBUTION) or 'unknown'}",
    "Accept-Encoding": "identity",  # a checksum holds for the file as it is, not for what a server makes of it
}


@dataclass(frozen=True)
class Patience:
    """How long is waited, and how often it is tried again.

    Args:
        connect: seconds for a connection.
        read: seconds without a byte after which an answer has stalled.
        slowest: bytes a second; an answer that stays below it for `read` seconds has stalled too.
        attempts: at one address without getting any further, at least one.
        first: seconds before the second attempt; every further wait is twice as long.
        longest: seconds; no wait is longer, whatever the server asks for.
        redirects: that are followed.
        sleep: waits so many seconds.
    """

    connect: float = 15.0
    read: float = 60.0
    slowest: float = 1024.0
    attempts: int = 5
    first: float = 1.0
    longest: float = 60.0
    redirects: int = 10
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failures: int, asked: float | None) -> float:
        """Seconds before the next attempt.

        Args:
            failures: attempts so far.
            asked: seconds that the server asked for.
        """
        return min(self.longest, max(asked or 0.0, self.first * 2.0 ** (failures - 1)))


class TroubleError(Exception):
    """An address that did not give the file; `reason` goes on from its name.

    Args:
        reason: what happened, e.g. `answered 404 Not Found`.
        again: another attempt may go better.
        after: seconds to wait, where the server said so.
        answered: the server was reached.
    """

    def __init__(self, reason: str, *, again: bool = False, after: float | None = None, answered: bool = True) -> None:
        """Remember them."""
        super().__init__(reason)
        self.reason, self.again, self.after, self.answered = reason, again, after, answered


class Client:
    """Asks servers. A host that could not be reached with all patience is not asked again."""

    def __init__(self, patience: Patience | None = None) -> None:
        """Open nothing yet."""
        self.patience = patience or Patience()
        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self._dead: set[str] = set()

    def __enter__(self) -> Client:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close all connections."""
        self._session.close()

    def give_up(self, url: str) -> None:
        """Remember that a host cannot be reached."""
        self._dead.add(urlsplit(url).netloc)

    def size(self, url: str) -> int | None:
        """Ask how many bytes there are at an address; None where nobody says. One attempt."""
        try:
            with self._answer("HEAD", url, {}) as answer:
                return length(answer) if answer.status_code == HTTPStatus.OK else None
        except TroubleError as trouble:
            if not trouble.answered:
                self.give_up(url)
            return None

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
        """Ask for what is at an address; redirects are followed, nothing of the body is read yet.

        Raises:
            TroubleError: no answer, one that is neither 200, 206 nor 416, or a redirect that is not followed.
        """
        with self._answer("GET", url, headers) as answer:
            status = answer.status_code
            if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE):
                again = status in _AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR
                raise TroubleError(f"answered {status} {_phrase(status)}".rstrip(), again=again, after=_after(answer))
            yield answer

    def blocks(self, answer: requests.Response) -> Iterator[bytes]:
        """Read a body as it comes over the wire, without undoing any content encoding.

        Raises:
            TroubleError: it breaks off, stalls or trickles.
        """
        began, count = time.monotonic(), 0
        patience = self.patience
        while True:
            try:
                # read1 hands on what is there, so that a stall loses nothing that has come
                block: bytes = answer.raw.read1(_BLOCK, decode_content=False)
            except ReadTimeoutError as error:
                raise TroubleError(f"stalled: nothing came for {patience.read:g} s", again=True) from error
            except (HTTPError, OSError) as error:
                raise TroubleError("broke off", again=True) from error
            if not block:
                return
            yield block
            count += len(block)
            passed = time.monotonic() - began
            if passed > patience.read:
                if count < patience.slowest * passed:
                    raise TroubleError(f"stalled: {count:,} bytes came in {passed:.0f} s", again=True)
                began, count = time.monotonic(), 0

    @contextmanager
    def _answer(self, verb: str, url: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
        """Follow redirects to an answer that is none, and close it at the end."""
        for _ in range(self.patience.redirects + 1):
            answer = self._one(verb, url, headers)
            try:
                target = self._session.get_redirect_target(answer)
                if target is None:
                    yield answer
                    return
            finally:
                answer.close()
            url = followed(url, target)
        raise TroubleError(f"redirected more than {self.patience.redirects} times")

    def _one(self, verb: str, url: str, headers: Mapping[str, str]) -> requests.Response:
        """Ask one server once."""
        scheme, host = urlsplit(url).scheme, urlsplit(url).netloc
        if scheme not in ("http", "https"):
            raise TroubleError(f"has the scheme {scheme or 'of no kind'!r}; only http and https are fetched")
        if host in self._dead:
            raise TroubleError("could not be reached before", answered=False)
        timeout = (self.patience.connect, self.patience.read)
        try:
            return self._session.request(
                verb, url, headers=dict(headers), stream=True, allow_redirects=False, timeout=timeout
            )
        except requests.RequestException as error:
            raise _trouble(error, self.patience) from error


def length(answer: requests.Response) -> int | None:
    """The length of a body as its header says, None where it says none."""
    text = answer.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _trouble(error: requests.RequestException, patience: Patience) -> TroubleError:
    """Name a failure in our own words: those of the library hold the whole address."""
    kinds: tuple[tuple[type[Exception], str, bool], ...] = (
        (requests.exceptions.SSLError, "has no certificate that is trusted here", False),
        (requests.exceptions.ProxyError, "could not be reached through the proxy", True),
        (requests.exceptions.ConnectTimeout, f"could not be reached in {patience.connect:g} s", True),
        (requests.exceptions.ReadTimeout, f"did not answer in {patience.read:g} s", True),
        (requests.exceptions.ConnectionError, "could not be reached, or broke the connection off", True),
    )
    for kind, words, again in kinds:
        if isinstance(error, kind):
            return TroubleError(words, again=again, answered=False)
    return TroubleError(f"cannot be asked ({type(error).__name__})")


def followed(url: str, target: str) -> str:
    """Return where a redirect leads.

    Raises:
        TroubleError: from https to anything else.
    """
    found = urljoin(url, target)
    if urlsplit(url).scheme == "https" and urlsplit(found).scheme != "https":
        raise TroubleError(f"redirects from https to {bare(found)}, which is not followed")
    return found


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _after(answer: requests.Response) -> float | None:
    """Seconds that a server asks to wait: `Retry-After`, which is a number or a date."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
