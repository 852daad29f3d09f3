"""The head of an HTTP request, read strictly, and what may be answered: Host, Origin, token, path.

A request that bends the grammar is refused rather than interpreted: two programs that read it
differently (a proxy and what is behind it) are how requests are smuggled.
"""

import hmac
import ipaddress
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, unquote_to_bytes

MAX_HEAD = 16 * 1024
"""Bytes of a request's head; Chromium sends about 1 kB."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") (/[\x21-\x7e]*) HTTP/1\.1")
_HEADER = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([\x20-\x7e\t]*?)[ \t]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,127}")

ONCE = ("host", "origin", "cookie", "upgrade", "sec-websocket-key", "sec-websocket-version")
"""Headers whose repetition makes a request ambiguous."""


class Refused(Exception):
    """A request that is not answered, with the status to say so."""

    def __init__(self, status: HTTPStatus, reason: str):
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Request:
    """method, path (still encoded, without its query), query, headers with small-letter names."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @property
    def is_websocket(self) -> bool:
        """True if it asks for a websocket."""
        return self.headers.get("upgrade", "").lower() == "websocket"

    def cookie(self, name: str) -> str:
        """The value of a cookie, "" if it was not sent."""
        for part in self.headers.get("cookie", "").split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
        return ""


def read_head(head: bytes) -> Request:
    """The request whose head (up to and with the empty line) this is."""
    if len(head) > MAX_HEAD:
        raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request is too large.")
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    first = _REQUEST_LINE.fullmatch(lines[0])
    if first is None:
        raise Refused(HTTPStatus.BAD_REQUEST, "The request line cannot be read.")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "A header cannot be read.")
        name, value = found.group(1).decode().lower(), found.group(2).decode()
        if name in headers and name in ONCE:
            raise Refused(HTTPStatus.BAD_REQUEST, f"The header {name} came twice.")
        headers[name] = value
    path, _, query = first.group(2).decode().partition("?")
    return Request(first.group(1).decode(), path, query, headers)


@dataclass(frozen=True)
class Gate:
    """Who may come in: requests to `hosts` ("127.0.0.1:8080"), of their own origin, with a secret.

    token: in the printed address; once: tokens that are good for one visit; session: in the cookie
    that a token is exchanged for; place: the path that the cookie is for, all that is served lies
    below it. Browsers send cookies to every port of a machine, but only to their path, so a server
    on another port, which cannot know the place, is never sent this one.
    """

    hosts: frozenset[str]
    token: str
    session: str
    place: str
    once: set[str] = field(default_factory=set)

    @property
    def cookie_name(self) -> str:
        """Of its own for every editor: two on one machine do not overwrite each other's."""
        return f"pliant_{self.place}"

    def check(self, request: Request) -> None:
        """Refuse what did not come from a page of ours, or a visitor without the token."""
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered.")
        if "content-length" in request.headers or "transfer-encoding" in request.headers:
            raise Refused(HTTPStatus.BAD_REQUEST, "A request must not have a body.")
        # a name that an attacker's DNS points here (rebinding) is not one of ours
        if request.headers.get("host", "").lower() not in self.hosts:
            raise Refused(HTTPStatus.FORBIDDEN, "This host name is not served.")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{h}" for h in self.hosts}:
            raise Refused(HTTPStatus.FORBIDDEN, "Requests from other origins are refused.")
        if request.is_websocket and origin is None:
            raise Refused(HTTPStatus.FORBIDDEN, "A websocket needs an origin.")
        arrives = self.has_token(request)
        foreign = request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        follows_link = request.headers.get("sec-fetch-mode") == "navigate" and arrives
        if foreign and not follows_link:
            raise Refused(HTTPStatus.FORBIDDEN, "Requests from other pages are refused.")
        if not arrives and not self.has_session(request):
            raise Refused(
                HTTPStatus.FORBIDDEN, "Open the address that `pliant view` printed: it has a token."
            )

    def has_token(self, request: Request) -> bool:
        """True if the address carries a token."""
        given = _token(request).encode()
        known = [token.encode() for token in (self.token, *self.once)]
        return request.path == "/" and any(hmac.compare_digest(given, k) for k in known)

    def use_token(self, request: Request) -> None:
        """Forget a token that was good for this visit only."""
        self.once.discard(_token(request))

    def has_session(self, request: Request) -> bool:
        """True if the cookie carries the session, at the cookie's place."""
        given = request.cookie(self.cookie_name)
        return self.below(request) is not None and hmac.compare_digest(
            given.encode(), self.session.encode()
        )

    def below(self, request: Request) -> str | None:
        """The path below the place, "/" for itself; None elsewhere."""
        rest = request.path.removeprefix(f"/{self.place}")
        return (rest or "/") if rest != request.path and rest[:1] in ("", "/") else None


def _token(request: Request) -> str:
    """The one token in a request's address, "" if there is none."""
    try:
        given = parse_qs(request.query, max_num_fields=8).get("token", [])
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "The address has too many parts.") from None
    return given[0] if len(given) == 1 else ""


def names_of(host: str, port: int) -> frozenset[str]:
    """What a browser may call the server that listens on `host`."""
    names = {host}
    if is_loopback(host):
        names |= {"127.0.0.1", "localhost", "::1"}
    elif host in ("0.0.0.0", "::"):
        import socket

        names |= {"127.0.0.1", "localhost", "::1", socket.gethostname()}
        names |= {str(i[4][0]) for i in _own_addresses()}
    return frozenset(f"[{n}]:{port}" if ":" in n else f"{n.lower()}:{port}" for n in names)


def _own_addresses() -> list:
    import socket

    try:
        return socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return []


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def file_name(path: str) -> str:
    """The plain file name in "/files/NAME"; Refused if it is anything else.

    Decoded once, as a browser encodes it once: no separators, no leading dot, so nothing above or
    beside the folder can be named, however it is written.
    """
    name = path.removeprefix("/files/")
    try:
        text = unquote_to_bytes(name).decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if not _FILE_NAME.fullmatch(text):
        raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
    return text
