"""A server on the loopback interface that lends credentials to one run."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Lender:
    """Where a run gets credentials, and what it must show."""

    url: str
    token: str
    raised: BaseException | None = None  # by the callback


@contextlib.contextmanager
def lend(callback: Callable[..., Mapping[str, Any]]) -> Iterator[Lender]:
    """Serve what ``callback`` returns until the block ends.

    Only who shows the token gets an answer. Each request is a call, on a thread of
    the server; the command asks again shortly before ``expires_at``.
    """
    lender = Lender(url="", token=secrets.token_urlsafe(32))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "")
            if not hmac.compare_digest(shown.encode(), f"Bearer {lender.token}".encode()):
                self.send_error(403)
                return
            asked = parse_qs(urlsplit(self.path).query).get("url", [""])[0]
            try:
                status, body = 200, json.dumps(_plain(_call(callback, asked)))
            except BaseException as raised:
                lender.raised = raised
                # A status that is not tried again: the callback has decided.
                status, body = 424, f"the credentials callback failed: {type(raised).__name__}"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        lender.url = f"http://127.0.0.1:{server.server_address[1]}/"
        serving = threading.Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="bloomjoin-credentials",
            daemon=True,
        )
        serving.start()
        try:
            yield lender
        finally:
            server.shutdown()
            serving.join()


def _call(callback: Callable[..., Mapping[str, Any]], url: str) -> Mapping[str, Any]:
    """Call back with the URL of the bucket, if the callback takes an argument."""
    import inspect

    try:
        inspect.signature(callback).bind(url)
    except (TypeError, ValueError):
        return callback()
    return callback(url)


def _plain(credentials: Mapping[str, Any]) -> dict[str, str]:
    """Return credentials as text. A time without a zone is UTC, as boto3's are."""
    out = {}
    for name, value in credentials.items():
        if value is None:
            continue
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            value = zoned.isoformat()
        out[name] = str(value)
    return out
