"""How fast the Python package answers: python -m forerun.bench_api

Prints the time of `import forerun` in a fresh process, of the first question (which loads the native part and what it
knows), of those after it, and the same question asked in C++; and, where PyTorch and transformers are there, what the
capture of a decoder with 1.2 billion parameters takes of a fresh process.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from typing import Any, Callable

import forerun
from forerun.api.asking import native

REPEATS = 30
# Llama 3.2 1B, without weights.
CAPTURE = """
import resource, time
start = time.perf_counter()
import torch
import transformers
import forerun.capture
config = transformers.LlamaConfig(
    hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
    vocab_size=128256, tie_word_embeddings=True, use_cache=False)
with torch.device("meta"):
    model = transformers.LlamaForCausalLM(config).train()
tokens = torch.zeros(2, 1024, dtype=torch.long)
imported = time.perf_counter()
forerun.capture(
    model, torch.optim.AdamW(model.parameters()), {"input_ids": tokens, "labels": tokens}, precision="amp_bf16")
ended = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{ended - imported:8.2f} s, imports {imported - start:.2f} s before it; {peak:.0f} MiB at the process' peak")
"""


def seconds(task: Callable[[], object]) -> float:
    """What one run takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def against_native(**words: Any) -> str:
    """A prediction in Python and the same call in C++, taken in turn: what else the machine does falls on both."""
    batch = words.get("batch", 0)
    pairs = [
        (seconds(lambda: forerun.predict("resnet50", **words)), native().predict_seconds("resnet50", batch))
        for _ in range(REPEATS)
    ]
    python, there = (1000 * statistics.median(times) for times in zip(*pairs))
    return f"{python:8.2f} ms, in C++ {there:8.2f} ms: {python / there:.3f} times"


def of_process(code: str) -> float:
    """What a fresh Python says it took."""
    script = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
    times = [
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return 1000 * statistics.median(times)


def of_capture() -> str:
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        return f"not measured: {' and '.join(missing)} is missing"
    told = subprocess.run([sys.executable, "-c", CAPTURE], capture_output=True, text=True, check=True).stdout
    return told.strip("\n")


def main() -> int:
    first = of_process("import forerun; forerun.predict('resnet50')")
    forerun.predict("resnet50")
    print(f"import forerun                            {of_process('import forerun'):8.2f} ms")
    print(f"import and first prediction               {first:8.2f} ms")
    print(f'forerun.predict("resnet50")               {against_native()}')
    print(f'forerun.predict("resnet50", batch=64)     {against_native(batch=64)}')
    print(f"forerun.capture of 1.2 billion parameters {of_capture()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
