"""A hub on loopback: one repository, org/name, with its large file on a second server."""

import hashlib
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPO = "org/name"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = "model.safetensors"


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class FakeHub:
    def __init__(self):
        self.files = {
            "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
            "generation_config.json": b"{}",
            "tokenizer.json": b'{"version": "1.0"}',
            "additional_chat_templates/tool_use.jinja": b"{{ messages }}",
            LARGE: bytes(range(256)) * 12_000,
        }
        self.log = []  # (server, method, path, range)
        self.tokens = []  # Authorization seen by the second server
        self.gated = False
        self.pace = 0  # seconds between 64 KiB pieces of the large file
        self.cdn = self._start(self._cdn)
        self.hub = self._start(self._hub)
        self.url = f"http://127.0.0.1:{self.hub.server_port}"

    def close(self):
        for server in (self.hub, self.cdn):
            server.shutdown()
            server.server_close()

    def etag(self, name):
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if name == LARGE else git_sha1(data)

    def downloads(self):
        """Requests for content since the last call."""
        got = [e for e in self.log if e[1] == "GET" and "/api/" not in e[2]]
        self.log.clear()
        return got

    def _start(self, answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                try:
                    answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            do_HEAD = do_GET

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def _hub(self, h):
        path = urllib.parse.urlsplit(h.path).path
        self.log.append(("hub", h.command, path, h.headers.get("Range")))
        if self.gated:
            return self._send(h, 403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."})
        if path.startswith(f"/api/models/{REPO}/tree/"):
            tree = []
            for name, data in self.files.items():
                entry = {"type": "file", "path": name, "size": len(data), "oid": git_sha1(data)}
                if name == LARGE:
                    entry["lfs"] = {"oid": self.etag(name), "size": len(data), "pointerSize": 130}
                tree.append(entry)
            return self._json(h, tree)
        if path in (f"/api/models/{REPO}", f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/{COMMIT}"):
            siblings = [{"rfilename": n, "size": len(d)} for n, d in self.files.items()]
            return self._json(h, {"id": REPO, "modelId": REPO, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0, "private": False})
        for revision in ("main", COMMIT):
            prefix = f"/{REPO}/resolve/{revision}/"
            name = urllib.parse.unquote(path[len(prefix) :])
            if not path.startswith(prefix):
                continue
            if name not in self.files:
                return self._send(h, 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{self.etag(name)}"'}
            if name == LARGE:
                headers |= {
                    "X-Linked-Etag": f'"{self.etag(name)}"',
                    "X-Linked-Size": str(len(self.files[name])),
                    "Location": f"http://localhost:{self.cdn.server_port}/{name}",
                }
                return self._send(h, 302, b"", headers)
            return self._content(h, self.files[name], headers)
        self._send(h, 404, b"", {"X-Error-Code": "RepoNotFound"})

    def _cdn(self, h):
        name = urllib.parse.unquote(h.path[1:])
        self.log.append(("cdn", h.command, h.path, h.headers.get("Range")))
        self.tokens.append(h.headers.get("Authorization"))
        self._content(h, self.files[name], {"ETag": '"cdn"'}, self.pace)

    def _json(self, h, value):
        self._send(h, 200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _content(self, h, data, headers, pace=0):
        wanted = h.headers.get("Range")
        status, total = 200, len(data)
        if wanted:
            start, _, end = wanted.removeprefix("bytes=").partition("-")
            start, end = int(start), int(end) if end else total - 1
            data, status = data[start : end + 1], 206
            headers = headers | {"Content-Range": f"bytes {start}-{end}/{total}"}
        self._send(h, status, data, headers, pace)

    def _send(self, h, status, body, headers, pace=0):
        h.send_response(status)
        for k, v in headers.items():
            h.send_header(k, v)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        if h.command == "HEAD":
            return
        for i in range(0, len(body), 65536):
            h.wfile.write(body[i : i + 65536])
            h.wfile.flush()
            time.sleep(pace)
