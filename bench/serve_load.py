#!/usr/bin/env python3
"""How `forerun serve` bears load: questions of `predict`, sent at a rate over connections that stay open.

usage: bench/serve_load.py [--rate N] [--count N] [--connections N] [--mix any|controls|batches] [--program FILE]
       bench/serve_load.py --soak N [--seconds N] [--connections N] [--program FILE]

Starts a server of its own with an empty store, sends `--count` questions, no two of them alike, and prints a table:
rate, how long answers took (p50, p95, p99, most), processor time of server and workers a question, and their memory
after every tenth. A question's time counts from when it was due, not from when a connection was free for it.
`--rate 0`: each connection asks as soon as it was answered. Mixes:
  any       every question another model, batch, length, precision and GPU than the one before
  controls  somebody at the page: one control after the other, of one model at a time
  batches   ResNet-50 on the default GPU, only the batch differs
`--soak`: N requests as they come in over a day, each as soon as the one before it on its connection was answered: most
are questions that were asked before, one in a hundred is new; between them the page, lists, kept answers, questions that
are wrong and requests without the token. Memory after every tenth; what it grew by in the second half, when all that is kept
is full, must be below a twentieth: the most of the last three tenths over the most of the three about the middle, since
processes that answer are replaced now and then. `--seconds` ends it earlier, and says so.
Exits with 1 where a question was not answered, or memory grew. Standard library alone.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import itertools
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, Optional

IMAGES = ["resnet50", "resnet18", "vit_b_16", "mobilenet_v3_large"]
TOKENS = ["gpt2", "bert", "llama"]
GPUS = ["h200", "h100_sxm", "a100_80gb", "a100_40gb", "l40s", "l4", "a10", "rtx_4090", "rtx_3090", "b200"]
PRECISIONS = ["tf32", "amp_bf16", "amp_fp16", "bf16"]
IMAGE_BATCHES = range(16, 1024)
TOKEN_BATCHES = range(2, 130)
LENGTHS = range(128, 513, 4)


def questions(mix: str, seed: int) -> Iterator[dict[str, Any]]:
    """Questions without end; the caller drops those that were there."""
    rng = random.Random(seed)
    if mix == "batches":
        for batch in itertools.count(64):
            yield {"model": "resnet50", "batch": batch}
    asked: dict[str, Any] = {}
    for number in itertools.count():
        if mix == "any" or number % 20 == 0:
            model = rng.choice(IMAGES + TOKENS)
            asked = {"model": model, "gpu": rng.choice(GPUS), "precision": rng.choice(PRECISIONS)}
            if mix == "controls":
                asked["brief"] = True  # as the page asks while a control moves
        controls = ["batch", "gpu", "precision"] + (["length"] if asked["model"] in TOKENS else [])
        changed = controls if mix == "any" or number % 20 == 0 else [rng.choice(controls)]
        for control in changed:
            if control == "batch":
                asked["batch"] = rng.choice(IMAGE_BATCHES if asked["model"] in IMAGES else TOKEN_BATCHES)
            elif control == "gpu":
                asked["gpu"] = rng.choice(GPUS)
            elif control == "precision":
                asked["precision"] = rng.choice(PRECISIONS)
            else:
                asked["set"] = {"length": rng.choice(LENGTHS)}
        yield dict(asked)


def different(mix: str, seed: int, count: int) -> Iterator[bytes]:
    """`count` of them as they are sent, no two alike; where a mix has no more that differ, an Error."""
    seen: set[int] = set()
    misses = 0
    for question in questions(mix, seed):
        body = json.dumps(question).encode()
        if hash(body) in seen:
            misses += 1
            if misses > 10_000 + 10 * count:
                raise SystemExit(f"the mix '{mix}' has no {count} different questions")
            continue
        seen.add(hash(body))
        yield body
        if len(seen) == count:
            return


class Server:
    """One `forerun serve`, and what it and its workers take."""

    def __init__(self, program: str, folder: str) -> None:
        self.process = subprocess.Popen([program, "serve", "--json", "--store", folder + "/runs.db"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.token: str = told["token"]
        self.port = int(told["address"].rsplit(":", 1)[1])

    def processes(self) -> list[int]:
        """The server, then its workers."""
        found = [self.process.pid]
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    stat = pathlib.Path(entry.path, "stat").read_text(encoding="utf-8")
                except OSError:
                    continue
                if int(stat.rpartition(")")[2].split()[1]) == self.process.pid:
                    found.append(int(entry.name))
        return found[:1] + sorted(found[1:])

    def seconds(self) -> float:
        """Processor time of all of them so far."""
        ticks = 0
        for pid in self.processes():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident(self) -> list[float]:
        """Megabytes of each."""
        megabytes = []
        for pid in self.processes():
            try:
                statm = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8")
            except OSError:  # a worker that ended in between
                continue
            megabytes.append(int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
        return megabytes


class Connection(asyncio.Protocol):
    """Asks one question after the other."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.wanted = 0
        self.status = b"200"
        self.word = b'"iter_ms":'
        self.answer: Optional[asyncio.Future[bool]] = None
        self.transport: Optional[asyncio.Transport] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.wanted:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self.received.lower().find(b"content-length: ")
            self.wanted = end + 4 + int(self.received[at + 16:self.received.index(b"\r\n", at)])
        if len(self.received) >= self.wanted and self.answer is not None:
            good = self.received.startswith(b"HTTP/1.1 " + self.status) and self.word in self.received
            self.received.clear()
            self.wanted = 0
            self.answer.set_result(good)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(False)

    def ask(self, sent: bytes) -> asyncio.Future[bool]:
        assert self.transport is not None
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(sent)
        return self.answer


class Load:
    """The questions on their way, and how long each took."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self.server = server
        self.options = options
        self.bodies = different(options.mix, options.seed, options.count)
        self.head = (f"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
                     "Content-Type: application/json\r\nContent-Length: ").encode()
        self.took: list[float] = []
        self.refused: list[bytes] = []
        self.tenths: list[tuple[int, list[float]]] = []
        self.sent = 0

    async def run(self) -> float:
        loop = asyncio.get_running_loop()
        connections = [(await loop.create_connection(Connection, "127.0.0.1", self.server.port))[1]
                       for _ in range(self.options.connections)]
        start = loop.time()
        await asyncio.gather(*(self.ask_all(connection, start) for connection in connections))
        return loop.time() - start

    async def ask_all(self, connection: Connection, start: float) -> None:
        loop = asyncio.get_running_loop()
        for body in self.bodies:
            due = start + self.sent / self.options.rate if self.options.rate else loop.time()
            self.sent += 1
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            good = await connection.ask(self.head + str(len(body)).encode() + b"\r\n\r\n" + body)
            self.took.append((loop.time() - due) * 1e3)
            if not good:
                self.refused.append(body)
            if len(self.took) * 10 // self.options.count > len(self.tenths):
                self.tenths.append((len(self.took), self.server.resident()))


SOAK_KNOWN = 300       # questions that come again and again
SOAK_EVERY = 1000      # requests after which their kinds repeat
SOAK_SETTLED = 5       # tenths after which nothing that is kept grows any more
SOAK_WINDOW = 3        # tenths of which the most counts
SOAK_MOST_GROWTH = 0.05


class Soak:
    """Requests of all kinds, and the memory while they are answered."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self.server = server
        self.options = options
        rng = random.Random(options.seed)
        self.known = list(different("any", options.seed, SOAK_KNOWN))
        self.order = [rng.randrange(SOAK_KNOWN) for _ in range(100_003)]
        self.fresh = different("any", options.seed + 1, options.soak // 100 + 1)
        self.sent = 0
        self.bad: list[bytes] = []
        self.tenths: list[tuple[int, list[float]]] = []
        self.ends = 0.0

    def request(self, method: str, path: str, body: bytes = b"", token: bool = True) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if token:
            head += f"Authorization: Bearer {self.server.token}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    def next(self, number: int) -> tuple[bytes, bytes, bytes]:
        """The request, the status that it must have, and a word of its reply."""
        kind = number % SOAK_EVERY
        if kind % 100 == 0:
            return self.request("POST", "/api/v1/predict", next(self.fresh)), b"200", b'"iter_ms":'
        known = self.known[self.order[number % len(self.order)]]
        if kind == 1:
            return self.request("POST", "/api/v1/predict?keep=true", known), b"200", b"Forerun-Result"
        if kind % 100 == 2:
            return self.request("GET", "/api/v1/results?limit=50"), b"200", b'"results":'
        if kind % 100 == 3:
            return self.request("GET", "/api/v1/devices"), b"200", b"H200"
        if kind % 100 == 4:
            return self.request("GET", "/"), b"200", b"</html>"
        if kind % 100 == 5:
            return self.request("POST", "/api/v1/predict", b'{"model":"no such model"}'), b"400", b'"detail":'
        if kind % 100 == 6:
            return self.request("GET", "/api/v1/results", token=False), b"401", b'"detail":'
        return self.request("POST", "/api/v1/predict", known), b"200", b'"iter_ms":'

    async def run(self) -> float:
        start = asyncio.get_running_loop().time()
        self.ends = start + self.options.seconds if self.options.seconds else float("inf")
        await asyncio.gather(*(self.ask_all() for _ in range(self.options.connections)))
        return asyncio.get_running_loop().time() - start

    async def connected(self) -> Connection:
        return (await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self.server.port))[1]

    async def ask_all(self) -> None:
        loop = asyncio.get_running_loop()
        connection = await self.connected()
        while self.sent < self.options.soak and loop.time() < self.ends and len(self.bad) < 10:
            number, self.sent = self.sent, self.sent + 1
            request, connection.status, connection.word = self.next(number)
            if not await connection.ask(request):
                self.bad.append(request)
            if connection.status == b"401":  # the server ends the connections of strangers
                assert connection.transport is not None
                connection.transport.close()
                connection = await self.connected()
            if (number + 1) * 10 // self.options.soak > len(self.tenths):
                self.tenths.append((number + 1, self.server.resident()))


def soak(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        try:
            load = Soak(server, options)
            seconds = asyncio.run(load.run())
            load.tenths.append((load.sent, server.resident()))
        finally:
            server.process.terminate()
            server.process.wait()
    print(f"{now()}, {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.connections} connections")
    print(f"{load.sent:,} requests of {options.soak:,} in {seconds:.0f} s, {load.sent / seconds:.0f} a second; "
          "memory of the server and its workers, MB:")
    for count, resident in load.tenths:
        print(f"  after {count:>9,}: " + ", ".join(f"{megabytes:.1f}" for megabytes in resident))
    for request in load.bad[:3]:
        print("not answered as it should be: " + request.decode()[:300], file=sys.stderr)
    if len(load.tenths) <= SOAK_SETTLED:
        print("too few requests to tell whether memory grows", file=sys.stderr)
        return 1
    sums = [sum(resident) for _, resident in load.tenths]
    middle = SOAK_SETTLED - 1 - SOAK_WINDOW // 2
    settled, last = max(sums[middle:middle + SOAK_WINDOW]), max(sums[-SOAK_WINDOW:])
    print(f"grown by {last - settled:+.1f} MB of {settled:.1f} since about {load.tenths[SOAK_SETTLED - 1][0]:,} requests")
    return 1 if load.bad or last > settled * (1 + SOAK_MOST_GROWTH) else 0


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=200, help="questions a second; 0: as fast as they are answered")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--mix", choices=["any", "controls", "batches"], default="any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--soak", type=int, default=0, help="requests of all kinds, most of them known")
    parser.add_argument("--seconds", type=float, default=0, help="at most, for --soak; 0: as long as it takes")
    parser.add_argument("--program", default=str(pathlib.Path(__file__).resolve().parent.parent / "build" / "forerun"))
    options = parser.parse_args()
    if options.soak:
        return soak(options)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        try:
            load = Load(server, options)
            seconds = asyncio.run(load.run())
            spent = server.seconds()
        finally:
            server.process.terminate()
            server.process.wait()
    took = sorted(load.took)
    at = [took[min(len(took) * share // 100, len(took) - 1)] for share in (50, 95, 99)] + [took[-1]]
    print(f"{now()}, {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, mix {options.mix}, "
          f"{options.connections} connections")
    print("| questions | asked at | answered | p50 | p95 | p99 | most | processor time a question |")
    print("|---|---|---|---|---|---|---|---|")
    rate = f"{options.rate:g}/s" if options.rate else "once answered"
    print(f"| {len(took):,} | {rate} | {len(took) / seconds:.1f}/s | " + " | ".join(f"{ms:.1f} ms" for ms in at) +
          f" | {spent / len(took) * 1e3:.2f} ms |")
    print("memory of the server and its workers, MB:")
    for count, resident in load.tenths:
        print(f"  after {count:>9,}: " + ", ".join(f"{megabytes:.1f}" for megabytes in resident))
    for body in load.refused[:3]:
        print("not answered: " + body.decode(), file=sys.stderr)
    if load.refused:
        print(f"{len(load.refused)} questions were not answered", file=sys.stderr)
    return 1 if load.refused else 0


if __name__ == "__main__":
    sys.exit(main())
