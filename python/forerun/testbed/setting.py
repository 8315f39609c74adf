"""A setting: how many servers and workers, and the rate of every node's link. Its name says it.

    P1w2-10G   1 parameter server, 2 workers, links of 10 Gb/s
    AR4-10G    4 workers that all-reduce, no server
"""

from __future__ import annotations

import dataclasses
import re
from typing import List, Tuple

SYNC, ASYNC, ALL_REDUCE = "sync", "async", "allreduce"
_NAME = re.compile(r"(?:P(\d+)w(\d+)|AR(\d+))-(\d+(?:\.\d+)?)(G|M)")
_MOST_NODES = 32


@dataclasses.dataclass(frozen=True)
class Setting:
    """Servers are the first nodes, workers the others."""

    name: str
    servers: int  # 0: all-reduce
    workers: int
    bits_per_second: float

    @classmethod
    def parse(cls, name: str) -> Setting:
        """Raises ValueError for what is no name of a setting."""
        found = _NAME.fullmatch(name)
        if not found:
            raise ValueError(f"{name!r} is no setting; give one such as P1w2-10G, P2w4-1G or AR4-10G")
        servers, workers = (0, int(found[3])) if found[3] else (int(found[1]), int(found[2]))
        if workers < 1 or (servers < 1 and workers < 2) or (not found[3] and servers < 1):
            raise ValueError(f"{name!r} has too few nodes")
        if servers + workers > _MOST_NODES:
            raise ValueError(f"{name!r} has more than {_MOST_NODES} nodes")
        return cls(name, servers, workers, float(found[4]) * (1e9 if found[5] == "G" else 1e6))

    @property
    def nodes(self) -> int:
        return self.servers + self.workers

    @property
    def rate(self) -> str:
        """The rate as the name has it: 10G."""
        return self.name.split("-")[1]

    @property
    def modes(self) -> Tuple[str, ...]:
        return (SYNC, ASYNC) if self.servers else (ALL_REDUCE,)

    def exchange_seconds(self, parameters: float) -> float:
        """The least time in which an iteration's gradients and parameters cross the links (float32)."""
        bytes_per_second = self.bits_per_second / 8
        if not self.servers:
            return 2 * (self.workers - 1) / self.workers * 4 * parameters / bytes_per_second
        busiest = max(1.0, self.workers / self.servers)  # a server's link, or a worker's
        return 2 * busiest * 4 * parameters / bytes_per_second


def partition(parameters: int, servers: int) -> List[Tuple[int, int]]:
    """The slice [begin, end) of the parameters that each server holds, as even as can be."""
    return [(parameters * server // servers, parameters * (server + 1) // servers) for server in range(servers)]
