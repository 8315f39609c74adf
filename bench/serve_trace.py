#!/usr/bin/env python3
"""How long a large profiler trace takes over HTTP, and the memory for it: upload, overview, timeline, critical path.

usage: bench/serve_trace.py TRACE [--program FILE]

Starts a server of its own with an empty store. bench/large_trace.py makes large traces. Standard library alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import tempfile
import time

from serve_load import Server, now, processor


def peak_megabytes(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--program", default=str(pathlib.Path(__file__).resolve().parent.parent / "build" / "forerun"))
    options = parser.parse_args()
    size = os.path.getsize(options.trace)
    print(f"{now()}, {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {size:,} bytes")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
            token = {"Authorization": f"Bearer {server.token}"}

            def asked(what: str, method: str, path: str, body: object, kind: str) -> bytes:
                begin, spent = time.monotonic(), server.seconds()
                connection.request(method, path, body, {**token, "Content-Type": kind} if body else token)
                reply = connection.getresponse()
                answer = reply.read()
                if reply.status not in (200, 201):
                    raise SystemExit(f"{what}: {reply.status} {answer[:300]!r}")
                peaks = [peak_megabytes(pid) for pid in server.processes()]
                print(f"{what}: {time.monotonic() - begin:.1f} s, processor time {server.seconds() - spent:.1f} s; most memory of "
                      f"the server {peaks[0]:.0f} MB, of a worker {max(peaks[1:]) * 1e6 / size:.2f} byte a byte")
                return answer

            with open(options.trace, "rb") as file:
                upload = json.loads(asked("upload", "POST", "/api/v1/uploads?name=trace.json", file.read(), "application/octet-stream"))["id"]
            words = {"files": [f"upload:{upload}"], "top": 500}
            asked("overview", "POST", "/api/v1/trace", json.dumps({**words, "no_path": True}), "application/json")
            asked("timeline", "GET", f"/api/v1/timeline/{upload}?px=2000", None, "")
            asked("critical path", "POST", "/api/v1/trace", json.dumps(words), "application/json")
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
