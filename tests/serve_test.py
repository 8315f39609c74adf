#!/usr/bin/env python3
"""The server as users, scripts and attackers meet it: a real one, started anew, over real sockets.

usage: serve_test.py PROGRAM SOURCE-DIR

Shown: answers are those of the command line; nothing is answered without the token, to another host's name or from another page, on
any route and method; no path reaches a file; uploads, jobs, results, tags, measurements and prices do what docs/serve.md says; what
brings down or fills up one process costs one answer; floods of bytes and of connections leave the server answering, in bounded memory;
it ends cleanly. Nothing is decided by how fast the machine is.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, Optional

sys.dont_write_bytecode = True
JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
MOST_RESIDENT = 300 << 20  # of the server itself, whatever is done to it


class Server:
    """One `forerun serve`, and how to ask it."""

    def __init__(self, program: str, folder: pathlib.Path, *options: str) -> None:
        self.process = subprocess.Popen([program, "serve", "--json", "--store", str(folder / "runs.db"), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.token: str = told["token"]
        self.link: str = told["link"]
        self.new_store: bool = told["new_store"]
        self.port = int(told["address"].rsplit(":", 1)[1])

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[dict[str, str]] = None,
            token: bool = True) -> tuple[int, Any, dict[str, str]]:
        """Status, body (JSON where it is) and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = dict(headers or {})
        if token:
            sent.setdefault("Authorization", "Bearer " + self.token)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=sent)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        kind = reply.getheader("Content-Type") or ""
        return reply.status, json.loads(data) if "json" in kind and data else data, dict(reply.getheaders())

    def api(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any, dict[str, str]]:
        return self.ask(method, "/api/v1" + path, body, **more)

    def upload(self, path: pathlib.Path, name: str = "") -> str:
        status, said, _ = self.api("POST", f"/uploads?name={name or path.name}", path.read_bytes(), headers=BYTES)
        assert status == 201, said
        return str(said["id"])

    def raw(self, sent: bytes, wait: float = 10) -> bytes:
        """What comes back for bytes as they are."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(sent)
            back = b""
            with contextlib.suppress(OSError):
                while len(back) < 1 << 20:
                    some = connection.recv(65536)
                    if not some:
                        break
                    back += some
                    if b"\r\n\r\n" in back and b"HTTP/1.1 4" in back:
                        break
            return back

    def resident(self) -> int:
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def workers(self) -> list[int]:
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError, ValueError):
                    if int(folder.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                        found.append(int(folder.name))
        return found

    def wait_job(self, job: str) -> dict[str, Any]:
        for _ in range(600):
            _, said, _ = self.api("GET", f"/jobs/{job}")
            if said["state"] not in ("waiting", "running"):
                return dict(said)
            time.sleep(0.1)
        raise AssertionError("the job does not end")

    def stop(self, by: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(by)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


class Case:
    """What the tests share."""

    def __init__(self, program: str, source: pathlib.Path, folder: pathlib.Path) -> None:
        self.program, self.source, self.folder = program, source, folder

    @contextlib.contextmanager
    def server(self, name: str, *options: str) -> Iterator[Server]:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        server = Server(self.program, place, *options)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.stop(signal.SIGKILL)

    def command(self, *words: str) -> str:
        return subprocess.run([self.program, *words], capture_output=True, text=True, cwd=self.source).stdout


def same_answers(case: Case) -> None:
    with case.server("answers") as server:
        for question, body, words in [
                ("predict", {"model": "resnet18", "batch": 8}, ["predict", "resnet18", "--batch", "8"]),
                ("predict", {"model": "gpt2_small", "gpu": "a100", "precision": "amp_bf16"},
                 ["predict", "gpt2_small", "--gpu", "a100", "--precision", "amp_bf16"]),
                ("fit", {"model": "resnet18", "gpu": "t4", "brief": True}, ["fit", "resnet18", "--gpu", "t4", "--brief"]),
                ("compare", {"model": "resnet18", "gpus": ["h200", "t4"]}, ["compare", "resnet18", "--gpus", "h200,t4"]),
                ("scale", {"model": "resnet50", "gpus": 8}, ["scale", "resnet50", "--gpus", "8"]),
                ("whatif", {"model": "resnet18", "apply": ["amp"]}, ["whatif", "resnet18", "--apply", "amp"])]:
            status, said, headers = server.api("POST", "/" + question, body)
            assert status == 200, said
            assert said == json.loads(case.command(*words, "--json")), question
            again, _, _ = server.api("POST", "/" + question, body, headers={"If-None-Match": headers["ETag"]})
            assert again == 304
        for name, words in [("devices", ["devices"]), ("links", ["devices", "--links"]), ("models", ["zoo"])]:
            status, said, _ = server.api("GET", "/" + name)
            lines = [json.loads(line) for line in case.command(*words, "--json").splitlines()]
            assert status == 200 and said == lines, name
        for name in ["optimizations", "policies", "accuracy", "health", "openapi.json"]:
            status, said, _ = server.api("GET", "/" + name)
            assert status == 200 and said, name
        status, columns, _ = server.api("POST", "/ops", {"model": "resnet18"})
        assert status == 200 and len(columns["columns"]["op"]) > 100
        status, said, _ = server.api("POST", "/predict", {"model": "resnet18", "batch": 0})
        assert status == 400 and said["where"] == "batch" and said["remedy"], said
        status, said, _ = server.api("POST", "/sweep", {"model": "resnet18", "over": {"batch": [1]}})
        assert status == 400 and "jobs" in said["remedy"], said


def contract(case: Case) -> None:
    """The committed contract is sound, and its routes are there."""
    document = json.loads((case.source / "docs/schema/http/openapi.json").read_text())
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids)) and len(ids) > 30
    with case.server("contract") as server:
        for path, methods in document["paths"].items():
            filled = path.replace("{id}", "0" * 32).replace("{key}", "k").replace("{gpu}", "g")
            for method in methods:
                body = b"{}" if method in ("post", "put") else None
                headers = BYTES if path == "/api/v1/uploads" else JSON
                if path.endswith("/events") or path == "/":
                    continue
                status, said, _ = server.ask(method.upper(), filled, body, headers=headers)
                assert status != 405, (method, path)
                assert status < 500, (method, path, said)
                if status == 404:
                    assert "route" not in said["detail"], (method, path, said)
                if status >= 400:
                    assert said["status"] == status and said["detail"], said


def nobody_else(case: Case) -> None:
    document = json.loads((case.source / "docs/schema/http/openapi.json").read_text())
    with case.server("access") as server:
        cookie = f"forerun_{server.port}={server.token}"
        own = f"http://127.0.0.1:{server.port}"
        for path, methods in document["paths"].items():
            filled = path.replace("{id}", "0" * 32).replace("{key}", "k").replace("{gpu}", "g")
            for method in [*(name.upper() for name in methods), "OPTIONS", "PATCH", "TRACE"]:
                kind = BYTES if path == "/api/v1/uploads" else JSON
                def status(headers: dict[str, str], token: bool = True) -> int:
                    code, _, answered = server.ask(method, filled, headers={**kind, **headers}, token=token)
                    assert not any(name.lower().startswith("access-control") for name in answered), (method, path)
                    return code
                if path != "/api/v1/health":
                    assert status({}, token=False) == 401, (method, path)
                    assert status({"Authorization": "Bearer " + "0" * 64}) == 401, (method, path)
                    assert status({"Cookie": cookie, "Sec-Fetch-Site": "same-site", "Origin": own}, token=False) == 403
                    assert status({"Sec-Fetch-Site": "cross-site"}) == 403, (method, path)
                assert status({"Host": "evil.example"}) == 403, (method, path)
                assert status({"Host": f"evil.example:{server.port}"}) == 403, (method, path)
                assert status({"Origin": "http://evil.example"}) == 403, (method, path)
                assert status({"Cookie": cookie, "Origin": "null"}, token=False) == 403, (method, path)
                if method in ("POST", "PUT", "DELETE"):
                    assert status({"Cookie": cookie}, token=False) == 403, (method, path)
        # Forms and scripts of other pages send these types without asking first.
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]:
            code, _, _ = server.api("POST", "/predict", b'{"model":"resnet18"}', headers={"Content-Type": kind})
            assert code == 415, kind
        # The page's own way in.
        code, _, headers = server.ask("GET", server.link.split(str(server.port))[1], token=False)
        assert code == 303 and headers["Location"] == "/" and "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        given = {"Cookie": headers["Set-Cookie"].split(";")[0]}
        code, page, headers = server.ask("GET", "/", headers=given, token=False)
        assert code == 200 and b"<html" in page
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert server.token.encode() not in page
        code, said, _ = server.api("POST", "/predict", {"model": "resnet18"}, headers={**given, "Origin": own}, token=False)
        assert code == 200, said
        back = server.raw(f"GET /api/v1/results HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        assert b" 400 " in back.split(b"\r\n")[0], back[:200]


def no_paths(case: Case) -> None:
    secret = case.folder / "secret.onnx"
    shutil.copy(case.source / "examples/onnx/small_cnn.onnx", secret)
    with case.server("paths") as server:
        head = f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
        for target in ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%252e%252e/etc/passwd", "/....//etc/passwd",
                       "/api/v1/results/..%2f..%2f", "/api/v1/uploads/../../etc/passwd", "/api/v1/uploads/%00", "/api/v1/timeline/..%5c..",
                       "/api/v1/results/a;b", "/api/v1/uploads//etc/passwd", "/api/v1/results/#x", "/api/v1/uploads/" + "a" * 5000,
                       "http://evil.example/", "/api/v1/jobs/../health", "/api/v1/results/%ff", "/api/v1/results?tag=%zz", "/?token=x&token=y"]:
            back = server.raw(("GET " + target + head).encode())
            line = back.split(b"\r\n")[0]
            assert any(code in line for code in (b" 400 ", b" 401 ", b" 404 ", b" 413 ", b" 414 ", b" 431 ")), (target, back[:300])
            assert b"root:" not in back
        for path in [str(secret), "/etc/passwd", "../secret.onnx", "/proc/self/environ"]:
            for body in [{"model": path}, {"model": "resnet18", "machine": path}, {"model": "resnet18", "prices": path},
                         {"model": "resnet18", "device_files": [path]}, {"model": "upload:" + path}]:
                status, said, _ = server.api("POST", "/predict", body)
                assert status == 400, (body, said)
            for question, body in [("schedule", {"file": path}), ("schedule", {"synthetic": "jobs=3,gpus=2", "policies": [path]}),
                                   ("sweep", {"over": {"model": [path]}}), ("check", {"file": path}), ("judge", {"lock": path})]:
                status, said, _ = server.api("POST", "/jobs", {"question": question, "body": body})
                assert status == 400, (question, body, said)
        # A file that a file names: the kernel keeps workers from it.
        table = case.folder / "jobs.csv"
        table.write_text(f"id,submit,gpus,model,iterations\na,0,1,{secret},100\nb,1,1,resnet18,100\n")
        listed = server.upload(table)
        body = {"file": "upload:" + listed, "gpu_count": "h200=2", "policies": ["fifo"], "predictor": "hybrid"}
        here = subprocess.run([case.program, "schedule", str(table), "--gpus", "h200=2", "--policy", "fifo", "--predictor", "hybrid"],
                              capture_output=True, text=True)
        assert here.returncode == 0, ("the command line, which may, does not read it either", here.stderr)
        status, job, _ = server.api("POST", "/jobs", {"question": "schedule", "body": body})
        if status == 202:
            ended = server.wait_job(job["id"])
            assert ended["state"] == "failed" and str(secret) in json.dumps(ended["error"]), ended
        else:
            assert status == 400 and "Landlock" in job["detail"], job


def uploads(case: Case) -> None:
    with case.server("uploads") as server:
        model = case.source / "examples/onnx/small_cnn.onnx"
        one = server.upload(model, "%3C/script%3E%3Cimg%20src=x%3E.onnx")
        assert one == hashlib.sha256(model.read_bytes()).hexdigest()
        assert server.upload(model, "again.onnx") == one
        _, listed, _ = server.api("GET", "/uploads")
        assert [entry["name"] for entry in listed["uploads"]] == ["again.onnx"]
        status, said, _ = server.api("POST", "/predict?keep=true", {"model": "upload:" + one, "batch": 2})
        assert status == 200 and said["id"] == "again.onnx", said
        expected = json.loads(case.command("predict", str(model), "--batch", "2", "--json"))
        assert said["iter_ms"] == expected["iter_ms"]
        trace = server.upload(case.source / "data/h200/whatif_traces/vgg19.base.trace.json.zst")
        status, whole, _ = server.api("GET", f"/timeline/{trace}?px=200")
        assert status == 200 and sum(sum(lane["events"]) for lane in whole["lanes"]) == whole["events"]
        assert all(len(lane["start"]) <= 201 for lane in whole["lanes"])
        status, part, _ = server.api("GET", f"/timeline/{trace}?from=1000000&to=2000000&px=50")
        assert status == 200 and 0 < sum(sum(lane["events"]) for lane in part["lanes"]) < whole["events"]
        status, said, _ = server.api("GET", f"/timeline/{one}")
        assert status == 400 and "ONNX" in said["detail"], said
        status, said, _ = server.api("POST", "/trace", {"files": ["upload:" + trace]})
        assert status == 200 and said["trace"]["files"][0]["file"] == "vgg19.base.trace.json.zst"
        other = server.upload(case.source / "tests/corpus/kineto/small.json")
        status, said, _ = server.api("POST", "/trace", {"files": ["upload:" + trace], "compare": ["upload:" + other], "top": 5})
        expected = json.loads(case.command("trace", str(case.source / "data/h200/whatif_traces/vgg19.base.trace.json.zst"), "--compare",
                                           str(case.source / "tests/corpus/kineto/small.json"), "--top", "5", "--json"))
        assert status == 200 and said["changes"] == expected["changes"] and said["after"]["files"][0]["file"] == "small.json", said
        # The file again, never as a page; and the page that hands it to Perfetto, which alone may talk to a window that it opens.
        status, content, headers = server.ask("GET", f"/api/v1/uploads/{other}/content")
        assert status == 200 and content == (case.source / "tests/corpus/kineto/small.json").read_bytes()
        assert headers["Content-Type"] == "application/octet-stream" and "attachment" in headers["Content-Disposition"], headers
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin" and "default-src 'none'" in headers["Content-Security-Policy"]
        assert server.ask("GET", f"/api/v1/uploads/{other}/content", token=False)[0] == 401
        for name in ("0" * 64, "..", "runs.db", "incoming-0"):
            assert server.ask("GET", f"/api/v1/uploads/{name}/content")[0] in (400, 404), name
        status, page, headers = server.ask("GET", "/perfetto")
        assert status == 200 and headers["Cross-Origin-Opener-Policy"] == "same-origin-allow-popups"
        assert headers["Content-Security-Policy"] == server.ask("GET", "/")[2]["Content-Security-Policy"]
        assert server.ask("GET", "/perfetto", token=False)[0] == 401
        status, said, _ = server.api("POST", "/uploads", b"", headers=BYTES)
        assert status == 400 and "empty" in said["detail"], said
        # Bombs: small files that would fill a disk or memory.
        bomb = case.folder / "bomb.json.gz"
        with gzip.open(bomb, "wb", 9) as stream:
            stream.write(b'{"traceEvents": [')
            block = b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1,"cat":"kernel"},' * 20000
            for _ in range(40):
                stream.write(block)
            stream.write(b" " * (64 << 20))
        status, said, _ = server.api("POST", "/uploads?name=bomb", bomb.read_bytes(), headers=BYTES)
        if status == 201:
            status, said, _ = server.api("POST", "/trace", {"files": ["upload:" + said["id"]]})
        assert status in (400, 422), (status, str(said)[:300])
        deep = case.folder / "deep.json"
        deep.write_bytes(b'{"traceEvents": ' + b"[" * 500000)
        status, said, _ = server.api("POST", "/uploads?name=deep", deep.read_bytes(), headers=BYTES)
        if status == 201:
            status, said, _ = server.api("POST", "/trace", {"files": ["upload:" + said["id"]]})
        assert status in (400, 422), (status, said)
        assert server.resident() < MOST_RESIDENT
        status, _, _ = server.api("DELETE", f"/uploads/{one}")
        assert status == 204
        status, _, _ = server.api("DELETE", f"/uploads/{one}")
        assert status == 404
        status, said, _ = server.api("POST", "/predict", {"model": "upload:" + one})
        assert status == 400 and "upload" in said["detail"], said
        folder = case.folder / "uploads/runs.db.uploads"
        assert not [name for name in os.listdir(folder) if len(name) != 64], "nothing half written stays"


def events_of(server: Server, job: str) -> list[tuple[str, dict[str, Any]]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("GET", f"/api/v1/jobs/{job}/events", headers={"Authorization": "Bearer " + server.token})
    reply = connection.getresponse()
    assert reply.getheader("Content-Type") == "text/event-stream"
    text = reply.read().decode()
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def jobs(case: Case) -> None:
    many = {"model": "resnet50", "over": {"batch": list(range(1, 2000))}}
    with case.server("jobs") as server:
        status, job, headers = server.api("POST", "/jobs", {"question": "sweep", "body": {"model": "resnet18", "over": {"batch": list(range(1, 60))}}})
        assert status == 202 and headers["Location"] == "/api/v1/jobs/" + job["id"]
        told = events_of(server, job["id"])
        assert told[-1][0] == "done" and all(name == "progress" for name, _ in told[:-1]), told
        done = told[-1][1]
        _, result, _ = server.api("GET", "/results/" + done["result"])
        assert len(result["answer"]["columns"]["id"]) == 59 and result["question"] == done["body"]
        assert events_of(server, job["id"])[-1][0] == "done", "who comes late hears the end"
        _, long, _ = server.api("POST", "/jobs", {"question": "sweep", "body": many})
        heard: list[tuple[str, dict[str, Any]]] = []
        listener = threading.Thread(target=lambda: heard.extend(events_of(server, long["id"])))
        listener.start()
        while server.api("GET", f"/jobs/{long['id']}")[1]["progress"]["done"] == 0:
            time.sleep(0.05)
        status, _, _ = server.api("DELETE", f"/jobs/{long['id']}")
        assert status == 200 and server.wait_job(long["id"])["state"] == "cancelled"
        listener.join()
        assert heard[-1][0] == "cancelled" and any(data["progress"]["done"] > 0 for _, data in heard), heard
        _, bad, _ = server.api("POST", "/jobs", {"question": "sweep", "body": {"model": "resnet18", "over": {"nothing": [1]}}})
        failed = server.wait_job(bad["id"])
        assert failed["state"] in ("failed", "done"), failed
        for body in [{}, {"question": "sweep"}, {"question": "rm", "body": {}}, {"question": "sweep", "body": []},
                     {"question": "sweep", "body": {}, "more": 1}]:
            assert server.api("POST", "/jobs", body)[0] == 400, body
        assert server.api("GET", "/jobs/" + "0" * 32)[0] == 404
        _, left, _ = server.api("POST", "/jobs", {"question": "sweep", "body": many})
        while server.api("GET", f"/jobs/{left['id']}")[1]["state"] == "waiting":
            time.sleep(0.05)
        workers = server.workers()
        server.stop(signal.SIGKILL)
        for _ in range(100):
            if not any(pathlib.Path(f"/proc/{worker}/exe").exists() for worker in workers):
                break
            time.sleep(0.1)
        assert not any(os.path.exists(f"/proc/{worker}/exe") for worker in workers), "workers end with their server"
    with case.server("jobs") as server:
        assert not server.new_store
        after = server.api("GET", f"/jobs/{left['id']}")[1]
        assert after["state"] == "failed" and "server ended" in after["error"]["detail"], after
        assert server.api("GET", "/results/" + done["result"])[0] == 200, "what was kept is kept"


def history(case: Case) -> None:
    with case.server("history") as server:
        ids = []
        for batch in (1, 2, 3):
            _, _, headers = server.api("POST", "/predict?keep=true", {"model": "resnet18", "batch": batch})
            ids.append(headers["Forerun-Result"])
        _, page, _ = server.api("GET", "/results?limit=2")
        assert [row["id"] for row in page["results"]] == ids[:0:-1] and page["next"]
        _, rest, _ = server.api("GET", "/results?limit=2&after=" + page["next"])
        assert [row["id"] for row in rest["results"]] == ids[:1] and rest["next"] is None
        assert server.api("GET", "/results?after=nonsense")[0] == 400
        assert server.api("GET", "/results?limit=0")[0] == 400 and server.api("GET", "/results?limit=x")[0] == 400
        assert server.api("GET", "/results?sort=up")[0] == 400
        assert server.api("PUT", f"/results/{ids[0]}/tags/git%20head", {"value": "äbc"})[0] == 204
        _, tagged, _ = server.api("GET", "/results?tag=git%20head%3D%C3%A4bc")
        assert [row["id"] for row in tagged["results"]] == ids[:1] and tagged["results"][0]["tags"] == {"git head": "äbc"}
        assert server.api("PUT", f"/results/{'0' * 32}/tags/a", {"value": "b"})[0] == 404
        assert server.api("POST", f"/results/{ids[1]}/measurements", {"iter_ms": 9.5, "machine": "lab"})[0] == 204
        assert server.api("POST", f"/results/{ids[1]}/measurements", {})[0] == 400
        assert server.api("POST", f"/results/{ids[1]}/measurements", {"iter_ms": -1})[0] == 400
        _, measured, _ = server.api("GET", "/measurements")
        assert measured["measurements"][0]["iter_ms"] == 9.5 and measured["measurements"][0]["forecast"]["id"] == ids[1]
        assert server.api("PUT", "/prices/h200", {"per_hour": 2.5, "currency": "USD"})[0] == 204
        assert server.api("PUT", "/prices/h200", {"currency": "USD"})[0] == 400
        assert server.api("GET", "/prices")[1]["prices"][0]["per_hour"] == 2.5
        assert server.api("DELETE", "/prices/h200")[0] == 204 and server.api("DELETE", "/prices/h200")[0] == 404
        store = str(case.folder / "history/runs.db")
        listed = json.loads(case.command("store", "list", store, "--json"))
        assert [row["id"] for row in listed["results"]] == ids[::-1], "beside a server that runs"
        shown = json.loads(case.command("store", "show", store, ids[0][:8]))
        assert shown == json.loads(case.command("predict", "resnet18", "--batch", "1", "--json"))
        assert server.api("DELETE", f"/results/{ids[0]}")[0] == 204 and server.api("GET", f"/results/{ids[0]}")[0] == 404
        _, text, headers = server.ask("GET", "/metrics")
        assert headers["Content-Type"].startswith("text/plain") and b"forerun_requests_total{status=\"2xx\"}" in text
        for line in text.decode().splitlines():
            assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0, line
        code, errors = server.stop(signal.SIGTERM)
        assert code == 0 and "ended" in errors and server.token not in errors, (code, errors)


def one_answer_at_most(case: Case) -> None:
    """What happens to a worker costs its answer alone."""
    with case.server("workers") as server:
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
        codes = [server.api("POST", "/predict", {"model": "resnet18", "batch": batch})[0] for batch in range(1, 6)]
        assert codes[-1] == 200 and set(codes) <= {200, 500}, codes
        # More at once than there is room for: each is answered, or told to come again.
        answers: list[int] = []
        def many(first: int) -> None:
            for batch in range(first, first + 3):
                answers.append(server.api("POST", "/predict", {"model": "resnet50", "batch": batch})[0])
        threads = [threading.Thread(target=many, args=(3 * i + 1,)) for i in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 300 and set(answers) <= {200, 429} and answers.count(200) > 50, answers
        assert server.api("GET", "/health")[0] == 200


def floods(case: Case) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with case.server("floods") as server:
        # A line that never ends.
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as flood:
            sent = 0
            with contextlib.suppress(OSError):
                for _ in range(300):
                    flood.sendall(b"a" * (1 << 20))
                    sent += 1
            assert sent < 300, "a line of 300 MB is read to its end"
        assert server.resident() < MOST_RESIDENT
        # Headers without end, bodies that are larger than they say or than they may be.
        head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\nContent-Type: application/json\r\n".encode()
        back = server.raw(b"GET /api/v1/health HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100000)) + b"\r\n")
        assert not back.startswith(b"HTTP/1.1 200"), back[:100]
        back = server.raw(b"POST /api/v1/predict HTTP/1.1\r\n" + head + b"Content-Length: 300000000\r\n\r\n" + b"[" * (20 << 20))
        assert b"200 OK" not in back
        status, said, _ = server.api("POST", "/predict", b'{"model": "' + b"a" * (3 << 20) + b'"}', headers=JSON)
        assert status == 413, status
        for body in [b"[" * 100000, b'{"a":' * 50000, b'{"model": "resnet18", "set": ' + b"[" * 900000, b"\x00" * 1000, b"\xff\xfe{"]:
            status, said, _ = server.api("POST", "/predict", body, headers=JSON)
            assert status == 400, (status, said)
        assert server.resident() < MOST_RESIDENT
        # Connections that say nothing, or a letter now and then.
        connections = []
        most = min(10000, hard - 200)
        for i in range(most):
            try:
                one = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                if i % 2:
                    one.sendall(b"POST /api/v1/predict HTTP/1.1\r\nHost: loc")
                connections.append(one)
            except OSError:
                break
        assert len(connections) > most // 2, len(connections)
        status, said, _ = server.api("POST", "/predict", {"model": "resnet18"})
        assert status == 200, said
        assert server.resident() < MOST_RESIDENT + (256 << 20), server.resident()
        for one in connections:
            one.close()
        # Who leaves before the answer.
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as gone:
                gone.sendall(b"POST /api/v1/fit HTTP/1.1\r\n" + head + b"Content-Length: 30\r\n\r\n" + b'{"model":"resnet18","batch":8}')
        status, said, _ = server.api("POST", "/predict", {"model": "resnet18"})
        assert status in (200, 429), said
        assert server.stop(signal.SIGINT)[0] == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def starts(case: Case) -> None:
    """What it says when it cannot begin, and where it keeps things."""
    with case.server("starts") as server:
        again = subprocess.run([case.program, "serve", "--port", str(server.port), "--store", str(case.folder / "x.db")],
                               capture_output=True, text=True)
        assert again.returncode == 1 and "another program listens" in again.stderr, again
    with case.server("wide", "--host", "0.0.0.0", "--allow-host", "Box.lan") as server:
        assert server.link.startswith("http://box.lan:")
        assert server.api("GET", "/results", headers={"Host": "box.lan"})[0] == 200
        assert server.api("GET", "/results", headers={"Host": "0.0.0.0"})[0] == 403
        code, errors = server.stop()
        assert code == 0 and "other machines can reach this server" in errors, errors
    with case.server("other", "--host", "127.0.0.2") as server:
        assert server.link.startswith("http://127.0.0.2:")
    text = case.folder / "text.db"
    text.write_text("no database " * 1000)
    for words, said in [(["--store", str(text)], "no SQLite file"), (["--host", "nowhere"], "--host"), (["--host", "0.0.0.0"], "--allow-host NAME"),
                        (["--store", "/nothere/x.db"], "/nothere/x.db"),
                        (["--store", "postgresql://me:secret@127.0.0.1:1/x"], "me:***@")]:
        ended = subprocess.run([case.program, "serve", *words], capture_output=True, text=True,
                               env={**os.environ, "XDG_DATA_HOME": str(case.folder / "home")})
        assert ended.returncode == 1 and said in ended.stderr and "secret" not in ended.stderr, ended
    home = case.folder / "own"
    process = subprocess.Popen([case.program, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "XDG_DATA_HOME": str(home)})
    assert process.stdout is not None and "token=" in process.stdout.readline()
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert f"{home}/forerun/forerun.db (new)" in errors, errors
    assert oct((home / "forerun/forerun.db").stat().st_mode)[-3:] == "600"


def main() -> int:
    program, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    chosen = sys.argv[3:]
    cases = [same_answers, contract, nobody_else, no_paths, uploads, jobs, history, one_answer_at_most, floods, starts]
    failed = 0
    for case in cases:
        if chosen and case.__name__ not in chosen:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Case(program, source, pathlib.Path(folder)))
                print(f"passed: {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as fault:  # noqa: BLE001 - the next case is worth a try
                failed += 1
                import traceback
                traceback.print_exc()
                print(f"failed: {case.__name__}: {fault}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
