"""The Hugging Face hub, for data and models alike: addresses, the token, commits, and a sentence for every refusal.

`HF_ENDPOINT` names its host, the official one or a mirror. The token (`HF_TOKEN`, else what `hf auth login` wrote) is
sent to that host and no other. The commit of a repository is the one that its name holds; else the hub's answer; where
nobody may be asked, or nobody answers, that of the cache.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from bench.core.files import write_bytes
from bench.core.messages import first_line
from bench.core.network import CERTIFICATES, is_offline, share_certificates

OFFICIAL = "https://huggingface.co"
SCHEME = "hf:"
"""What addresses of the hub begin with: `hf://datasets/OWNER/NAME@REVISION/PATH/IN/REPOSITORY`."""
FORM = "hf://datasets/OWNER/NAME@REVISION/PATH"

Kind = Literal["model", "dataset"]
Fault = Literal[
    "gated",
    "missing",
    "renamed",
    "revision",
    "file",
    "token",
    "forbidden",
    "disabled",
    "busy",
    "certificate",
    "proxy",
    "timeout",
    "unreachable",
    "offline",
    "other",
]

_ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[\w.-]+(?:/[\w.-]+)?)@(?P<revision>refs/(?:convert|pr)/[\w.-]+|[^/@]+)/(?P<path>.+)"
)
_RENAMED = re.compile(r"/datasets/(?P<name>[\w.-]+(?:/[\w.-]+)?)/resolve/")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
_NOUNS: Mapping[Kind, str] = {"model": "model", "dataset": "data set"}
_CODES: Mapping[str, Fault] = {
    "GatedRepo": "gated",
    "RepoNotFound": "missing",
    "RevisionNotFound": "revision",
    "EntryNotFound": "file",
}
_KINDS: Mapping[str, Fault] = {  # names of the errors of the library for HTTP that the hub's own library hides
    "OfflineModeIsEnabled": "offline",
    "ProxyError": "proxy",
    "TimeoutException": "timeout",
    "TimeoutError": "timeout",
    "TransportError": "unreachable",
    "ConnectionError": "unreachable",
}
_PASSING: frozenset[Fault] = frozenset({"timeout", "unreachable"})
_TIMEOUT = 60.0
"""Seconds without a byte after which the hub's library gives up, where it names no bound itself."""


@dataclass(frozen=True)
class Repository:
    """A model or data set of the hub."""

    kind: Kind
    name: str  # `OWNER/NAME`
    revision: str = ""  # a branch, a tag or a commit; empty for `main`

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a whole commit."""
        return bool(_COMMIT.fullmatch(self.revision))

    @property
    def page(self) -> str:
        """Its address in a browser."""
        return f"{endpoint()}/{'datasets/' * (self.kind == 'dataset')}{self.name}"

    @property
    def reference(self) -> Path:
        """The file of the hub's cache that holds the commit of the revision, whether it exists or not."""
        from huggingface_hub import constants

        folder = f"{self.kind}s--{self.name.replace('/', '--')}"
        return Path(constants.HF_HUB_CACHE) / folder / "refs" / (self.revision or "main")

    def download_command(self) -> str:
        """Return what fetches exactly this into the cache."""
        kind = " --repo-type dataset" * (self.kind == "dataset")
        return f"hf download {self.name}{kind}" + (f" --revision {self.revision}" if self.revision else "")


@dataclass(frozen=True)
class HubFile:
    """A file of a data set of the hub."""

    repository: Repository
    path: str  # in the repository

    @property
    def url(self) -> str:
        """Its address at the endpoint."""
        return f"{self.repository.page}/resolve/{quote(self.repository.revision, safe='')}/{quote(self.path)}"


@dataclass(frozen=True)
class Offer:
    """What the hub says of a file before its bytes come; empty and None where it says nothing."""

    sha256: str = ""
    size: int | None = None
    commit: str = ""
    name: str = ""  # of the repository, where it was renamed


class HubError(Exception):
    """A repository or file that the hub does not give; the text is what was found, `hint` what to type next."""

    def __init__(self, fault: Fault, found: str, hint: str) -> None:
        super().__init__(found)
        self.fault, self.found, self.hint = fault, found, hint


def endpoint() -> str:
    """Return the address of the hub: `HF_ENDPOINT`, else the official one."""
    return (os.environ.get("HF_ENDPOINT") or OFFICIAL).rstrip("/")


def hub_file(url: str) -> HubFile | None:
    """Read an address of the form `FORM`; None for any other."""
    match = _ADDRESS.fullmatch(url)
    return match and HubFile(Repository("dataset", match["name"], match["revision"]), match["path"])


def authorization() -> str | None:
    """Return the header `Authorization` for the endpoint; None where nobody has logged in."""
    from huggingface_hub import constants, get_token

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return f"Bearer {token}" if token else None


def prepare_library() -> None:
    """Let the hub's library trust the certificates that are named for anybody, and wait for no answer without end."""
    from huggingface_hub import get_session

    share_certificates()
    hooks = get_session().event_hooks["request"]
    if _bounded not in hooks:
        hooks.append(_bounded)


def _bounded(request: Any) -> None:
    """Give a request of the library that would wait for ever an end."""
    waits = request.extensions.get("timeout") or {}
    if waits.get("read") is None:
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _TIMEOUT)


def offer(answers: Iterable[tuple[str, Mapping[str, str]]], file: HubFile) -> Offer:
    """Return what the hub says of a file.

    Args:
        answers: address and headers of every answer, redirects first. Only what the endpoint says counts: another host
            may say anything.
        file: that was asked for.
    """
    host, headers, name = urlsplit(endpoint()).netloc, dict[str, str](), file.repository.name
    for url, of_answer in answers:
        parts = urlsplit(url)
        if parts.netloc.rpartition("@")[2] == host:
            headers = {key.lower(): value for key, value in of_answer.items()} | headers
            renamed = _RENAMED.search(parts.path)
            name = renamed["name"] if renamed else name
    checksum = _SHA256.fullmatch(headers.get("x-linked-etag", ""))
    size = headers.get("x-linked-size", "")
    return Offer(
        checksum[1] if checksum else "",
        int(size) if re.fullmatch("[0-9]{1,18}", size) else None,
        headers.get("x-repo-commit", ""),
        name if name != file.repository.name else "",
    )


def commit(repository: Repository) -> str:
    """Return the commit that a repository's revision has now; it is written down in the hub's cache.

    Raises `HubError` where it is not known: no such repository or revision, one that may not be read, another name
    since; or nobody answers, or may be asked, and the cache does not know it.
    """
    if repository.is_pinned:
        return repository.revision
    commit_in_cache = cached_commit(repository)
    if is_offline():
        if commit_in_cache is None:
            raise refusal("offline", repository)
        return commit_in_cache
    from huggingface_hub import HfApi

    prepare_library()
    try:
        info = HfApi(endpoint=endpoint()).repo_info(
            repository.name, repo_type=repository.kind, revision=repository.revision or None
        )
    except Exception as error:  # the errors of connections belong to a library that the hub's hides
        reason = refusal_of(error, repository)
        if reason.fault in _PASSING and commit_in_cache is not None:
            return commit_in_cache
        raise reason from error
    if info.id != repository.name:
        raise refusal("renamed", repository, str(info.id))
    if not _COMMIT.fullmatch(info.sha or ""):
        raise refusal("other", repository, f"an answer without a commit ({info.sha})")
    if info.sha != commit_in_cache:
        write_bytes(repository.reference, str(info.sha).encode())
    return str(info.sha)


def cached_commit(repository: Repository) -> str | None:
    """Return the commit that the hub's cache has for a revision; None where it has none."""
    path = repository.reference
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def fault_of_answer(status: int, headers: Mapping[str, str]) -> Fault | None:
    """Return what an answer of the hub means, None for one that says nothing about repository, file or token."""
    headers = {key.lower(): value for key, value in headers.items()}
    if code := _CODES.get(headers.get("x-error-code", "")):
        return code
    message = headers.get("x-error-message", "")
    if "disabled" in message:
        return "disabled"
    if status == HTTPStatus.UNAUTHORIZED:  # which is also said of a repository that does not exist
        return "token" if "credentials" in message else "missing"
    by_status: Mapping[int, Fault] = {403: "forbidden", 404: "missing", 429: "busy"}
    return by_status.get(status)


def refusal_of(error: BaseException, repository: Repository) -> HubError:
    """Return an error of the hub's library in our own words."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return refusal("certificate", repository)
        answer = getattr(cause, "response", None)
        fault = fault_of_answer(answer.status_code, answer.headers) if answer is not None else None
        if fault is not None:
            return refusal(fault, repository)
    names = [kind.__name__ for cause in chain for kind in type(cause).__mro__]
    fault = next((fault for name, fault in _KINDS.items() if name in names), None)
    while error.__cause__ is not None:  # the library's own sentence is often that something went wrong
        error = error.__cause__
    return refusal(fault or "other", repository, first_line(error))


def refusal(fault: Fault, repository: Repository, detail: str = "") -> HubError:
    """Return the error of a fault: what was found, and what to type.

    Args:
        fault: what is wrong.
        repository: of the hub.
        detail: the new name of a renamed one, the words of an unknown fault.
    """
    noun, page, revision = _NOUNS[repository.kind], repository.page, repository.revision
    host, last = urlsplit(endpoint()).netloc, repository.name.rpartition("/")[2]
    listing = f"{endpoint()}/{repository.kind}s?search={last}"
    log_in = "type hf auth login or set HF_TOKEN"
    sentences: Mapping[Fault, tuple[str, str]] = {
        "gated": (
            f"a gated {noun}, for those alone who have accepted its terms",
            f"accept them at {page}, then {log_in} (a token of the same account)",
        ),
        "missing": (
            f"no {noun} {repository.name} on {host} that may be read from here",
            f"compare the spelling with {listing}; for a private one, {log_in} (a token that may read it)",
        ),
        "renamed": (f"a {noun} that is called {detail} now", f"type {detail} in its place"),
        "revision": (
            f"no revision {revision or 'main'} of the {noun} {repository.name}",
            f"take a commit, branch or tag of {page}/commits/main, or leave the revision out",
        ),
        "file": (
            f"no such file in the {noun} {repository.name}",
            f"compare with {page}/tree/{revision or 'main'}",
        ),
        "token": (
            f"a token that {host} does not accept",
            "type hf auth login, or unset HF_TOKEN: what is public needs none; a token is of one host (HF_ENDPOINT)",
        ),
        "forbidden": (
            f"a token that may not read the {noun} {repository.name}",
            f"let it read that at {endpoint()}/settings/tokens, or {log_in} (another one)",
        ),
        "disabled": (f"a {noun} that {host} has disabled", f"{page} says why; take another"),
        "busy": (f"too many requests for {host}", "type the same command later; hf auth login raises the limit"),
        "certificate": (f"a certificate of {host} that is not trusted here", CERTIFICATES),
        "proxy": (f"a proxy that does not lead to {host}", "fix HTTPS_PROXY, or exempt the host with NO_PROXY"),
        "timeout": (
            f"no answer of {host} in time",
            "type the same command again, with HF_HUB_DOWNLOAD_TIMEOUT=60 to wait longer, or HF_ENDPOINT for a mirror",
        ),
        "unreachable": (
            f"that {host} cannot be reached",
            "fix the network or HTTPS_PROXY, or name a mirror by HF_ENDPOINT; --offline takes what is in the cache",
        ),
        "offline": (
            f"no {noun} {repository.name} whole in the cache {_cache()}, and no host may be contacted (offline)",
            f"type {repository.download_command()} where there is a network, and set HF_HOME to that cache",
        ),
        "other": (detail, f"{page} shows whether it is there"),
    }
    return HubError(fault, *sentences[fault])


def _cache() -> str:
    from huggingface_hub import constants

    return os.environ.get("HF_HOME") or constants.HF_HOME


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised from, the latest first; not what was merely being handled meanwhile."""
    current: BaseException | None = error
    visited = set[int]()
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        yield current
        replaced = current.__context__ if current.__suppress_context__ else None  # by `from None`
        current = current.__cause__ or replaced
