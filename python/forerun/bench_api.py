"""How fast the Python package answers: python -m forerun.bench_api

Prints the time of `import forerun` in a fresh process, of the first question (which loads the native part and what it
knows), of those after it, and the same question asked in C++.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Callable, List

import forerun
from forerun.api.asking import native

REPEATS = 30


def milliseconds(task: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median of several runs."""
    times: List[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def of_process(code: str) -> float:
    """What a fresh Python says it took."""
    script = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
    times = [
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return 1000 * statistics.median(times)


def main() -> int:
    first = of_process("import forerun; forerun.predict('resnet50')")
    forerun.predict("resnet50")
    python = milliseconds(lambda: forerun.predict("resnet50"))
    native_ms = 1000 * float(native().predict_seconds("resnet50", REPEATS))
    print(f"import forerun                 {of_process('import forerun'):8.1f} ms")
    print(f"import and first prediction    {first:8.1f} ms")
    print(f'forerun.predict("resnet50")    {python:8.2f} ms')
    print(f"the same call of C++           {native_ms:8.2f} ms")
    print(f"Python against C++             {python / native_ms:8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
