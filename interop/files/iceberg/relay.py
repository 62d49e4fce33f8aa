"""A REST catalog and an object store whose tokens expire within seconds: they relay to others, and log requests."""

import contextlib
import http.client
import http.server
import json
import secrets
import threading
import time
import urllib.parse

CREDENTIALS = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"


class Relay:
    """Grants OAuth tokens, and credentials for S3, that are refused once they are older than some seconds.

    Both are accepted for valid seconds. Clients are told that it is tells seconds; None: they are told nothing about
    credentials for S3, and an hour for tokens. Then only the first of both end, since clients renew what is refused
    once a minute. A read of a data file lasts for pause seconds, in parts. With lists, the catalog has an address for
    credentials alone.
    """

    def __init__(self, catalog, store, valid=2.0, tells=2.0, pause=0.0, lists=False):
        self.valid, self.tells, self.pause, self.lists = valid, tells, pause, lists
        self.tokens, self.sessions = {}, {}  # when they were granted
        self.busy, self.dies = 0, None  # after the first grant, so many answers are 503; after so many grants, the catalog ends
        self.log, self.lock, self.secrets = [], threading.Lock(), set()
        self.servers = [Server(self, Catalog, catalog), Server(self, Store, store)]
        self.catalog, self.store = (s.address for s in self.servers)

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def count(self, what, status=200):
        """How many requests of a kind were answered so."""
        with self.lock:
            return self.log.count((what, status))

    def granted(self, known):
        """A name for what is granted now."""
        name = secrets.token_hex(16)
        with self.lock:
            known[name] = time.monotonic()
            self.secrets.add(name)
        return name

    def fresh(self, known, name):
        with self.lock:
            first = next(iter(known), None)
            ends = name == first or self.tells is not None
            return name in known and (not ends or time.monotonic() - known[name] < self.valid)

    def rewrite(self, config):
        """Has clients read through the relay, with credentials that end soon."""
        with self.lock:
            self.sessions[config["s3.session-token"]] = time.monotonic()
            self.secrets |= {config["s3.session-token"], config["s3.secret-access-key"]}
        config["s3.endpoint"] = self.store
        config.pop("s3.session-token-expires-at-ms")
        if self.tells is not None:
            config["s3.session-token-expires-at-ms"] = str(int((time.time() + self.tells) * 1000))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, relay, handler, to):
        super().__init__(("127.0.0.1", 0), handler)
        self.relay, self.to = relay, urllib.parse.urlsplit(to).netloc
        self.address = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """Clients may hang up."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def forward(self, path, headers, body=b""):
        with contextlib.closing(http.client.HTTPConnection(self.server.to, timeout=30)) as c:
            c.request(self.command, path, body or None, headers)
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()

    def answer(self, what, status, headers, content, pause=0.0):
        with self.server.relay.lock:
            self.server.relay.log.append((what, status))
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", headers.get("Content-Length", 0) if self.command == "HEAD" else len(content))
        self.end_headers()
        step = len(content) // 4 + 1
        for at in range(0, len(content) if self.command != "HEAD" else 0, step):
            time.sleep(pause / 4)
            self.wfile.write(content[at : at + step])
            self.wfile.flush()

    def says(self, what, status, value):
        self.answer(what, status, {"Content-Type": "application/json"}, json.dumps(value).encode())


class Catalog(Handler):
    def do_POST(self):
        relay, body = self.server.relay, self.body()
        if urllib.parse.urlsplit(self.path).path != "/v1/oauth/tokens":
            return self.says("other", 404, {})
        status, _, content = self.forward(self.path, {"Content-Type": self.headers["Content-Type"]}, body)
        if status != 200:
            return self.says("token", status, json.loads(content))
        answer = json.loads(content)
        self.server.real = answer["access_token"]
        answer |= {"access_token": relay.granted(relay.tokens), "expires_in": 3600 if relay.tells is None else relay.tells}
        return self.says("token", 200, answer)

    def do_GET(self):
        relay, path = self.server.relay, self.path
        what = "settings" if path.startswith("/v1/config") else "credentials" if path.endswith("/credentials") else "table"
        if not relay.fresh(relay.tokens, self.headers.get("Authorization", "").removeprefix("Bearer ")):
            return self.says(what, 401, {"error": {"message": "the token has expired", "type": "NotAuthorizedException", "code": 401}})
        if relay.busy and relay.sessions:
            relay.busy -= 1
            return self.says(what, 503, {"error": {"message": "busy", "type": "ServiceUnavailableException", "code": 503}})
        headers = {"Authorization": f"Bearer {self.server.real}", "X-Iceberg-Access-Delegation": self.headers.get("X-Iceberg-Access-Delegation", "")}
        status, _, content = self.forward(path.removesuffix("/credentials"), headers)
        answer = json.loads(content)
        if status == 200 and what == "settings" and relay.lists:
            answer["endpoints"] = [CREDENTIALS]
        if status == 200 and what != "settings":
            for config in (answer["config"], *(c["config"] for c in answer["storage-credentials"])):
                relay.rewrite(config)
            if what == "credentials":
                answer = {"storage-credentials": answer["storage-credentials"]}
        self.says(what, status, answer)
        if len(relay.sessions) == relay.dies:
            self.close_connection = True
            self.server.shutdown()
            self.server.server_close()  # later connections are refused
        return None


class Store(Handler):
    def do_GET(self):
        relay, key = self.server.relay, urllib.parse.urlsplit(self.path).path
        what = "data" if "/data/" in key else "metadata"
        if not relay.fresh(relay.sessions, self.headers.get("X-Amz-Security-Token")):
            text = "<?xml version='1.0'?><Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
            return self.answer(what, 403, {"Content-Type": "application/xml"}, text.encode())
        return self.answer(what, *self.forward(self.path, dict(self.headers)), pause=relay.pause if what == "data" else 0)

    do_HEAD = do_GET
