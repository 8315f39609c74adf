"""Measures what training libraries' loops add to an iteration: the same models in a plain loop and in theirs.

    python -m forerun.loop_pairs -o loops.jsonl          # a GPU, transformers, accelerate and lightning are needed

One line for each model and loop: milliseconds an iteration, peak memory, trained tensors. docs/loops.md has what it
said of an H200. Every case runs in a process of its own, so that memory begins empty.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import multiprocessing
import sys
import time
from typing import Any, Callable, Dict, Optional, Sequence

import torch

from .training_loop import LOOPS

Json = Dict[str, Any]
_WARM, _TIMED = 8, 14  # iterations: before the clock is read, and between two readings


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of transformers with random weights, and its batch."""

    name: str
    kind: str  # GPT2LMHead, Llama, BertForSequenceClassification: the beginning of its class
    config: Json
    batch: int
    length: int
    precision: str = "amp_bf16"


CASES = (
    Case("gpt2-2-layers", "gpt2", {"n_layer": 2, "n_embd": 128, "n_head": 2, "vocab_size": 1000}, 2, 64),
    Case("gpt2", "gpt2", {}, 8, 1024),
    Case("gpt2-small-batch", "gpt2", {}, 2, 256),
    Case("bert", "bert", {"num_labels": 2}, 64, 256),
    Case(
        "llama-16-layers",
        "llama",
        {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 16, "num_attention_heads": 16,
         "num_key_value_heads": 4, "vocab_size": 32000},
        4,
        1024,
    ),
    Case(
        "llama-12-layers",
        "llama",
        {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 12, "num_attention_heads": 16,
         "num_key_value_heads": 8, "vocab_size": 128256},
        2,
        2048,
    ),
)


class Stopwatch:
    """Reads the clock and the allocator between two of the loop's iterations."""

    last = _WARM + _TIMED

    def __init__(self) -> None:
        self._iterations = 0
        self._begun = 0.0
        self.found: Json = {}

    def step(self) -> None:
        self._iterations += 1
        if self._iterations not in (_WARM, self.last):
            return
        torch.cuda.synchronize()
        if self._iterations == _WARM:
            self._begun = time.perf_counter()
            return
        stats = torch.cuda.memory_stats()
        self.found = {
            "ms": round((time.perf_counter() - self._begun) * 1000 / _TIMED, 3),
            "peak_allocated": stats["allocated_bytes.all.peak"],
            "peak_reserved": stats["reserved_bytes.all.peak"],
        }


def _model(case: Case) -> Any:
    import transformers

    classes = {
        "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config),
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
        "bert": (transformers.BertForSequenceClassification, transformers.BertConfig),
    }
    model_class, config_class = classes[case.kind]
    model = model_class(config_class(**case.config))
    model.config.use_cache = False
    return model.train()


class Tokens(torch.utils.data.Dataset[Json]):
    """Random tokens, which a causal model is to predict and a classifier to tell apart."""

    def __init__(self, case: Case, vocabulary: int) -> None:
        self._case = case
        self._tokens = torch.randint(0, vocabulary, (64, case.length))

    def __len__(self) -> int:
        return 64 * self._case.batch

    def __getitem__(self, index: int) -> Json:
        tokens = self._tokens[index % 64]
        return {"input_ids": tokens, "labels": torch.tensor(index % 2) if self._case.kind == "bert" else tokens}


def _optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


def _plain(case: Case, model: Any, data: Tokens, watch: Stopwatch) -> None:
    device = torch.device("cuda")
    model.to(device)
    optimizer = _optimizer(model)
    items = [data[index] for index in range(case.batch)]
    batch = {key: torch.stack([item[key] for item in items]).to(device) for key in items[0]}
    for _ in range(watch.last):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=case.precision == "amp_bf16"):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        watch.step()


def _trainer(case: Case, model: Any, data: Tokens, watch: Stopwatch) -> None:
    import transformers

    class Watched(transformers.TrainerCallback):
        def on_step_end(self, *_arguments: Any, **_named: Any) -> None:
            watch.step()

    arguments = transformers.TrainingArguments(
        "unused",
        per_device_train_batch_size=case.batch,
        max_steps=watch.last,
        bf16=case.precision == "amp_bf16",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    transformers.Trainer(model, arguments, train_dataset=data, callbacks=[Watched()]).train()


def _lightning(case: Case, model: Any, data: Tokens, watch: Stopwatch) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Json, _index: int) -> Any:
            return self.model(**batch).loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return _optimizer(self.model)

        def on_train_batch_end(self, *_arguments: Any) -> None:
            watch.step()

    trainer = lightning.Trainer(
        max_steps=watch.last,
        accelerator="gpu",
        devices=1,
        precision="bf16-mixed" if case.precision == "amp_bf16" else "32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=case.batch))


def _accelerate(case: Case, model: Any, data: Tokens, watch: Stopwatch) -> None:
    import accelerate

    accelerator = accelerate.Accelerator(mixed_precision="bf16" if case.precision == "amp_bf16" else "no")
    model.to(accelerator.device)
    loader = torch.utils.data.DataLoader(data, batch_size=case.batch)
    model, optimizer, loader = accelerator.prepare(model, _optimizer(model), loader)
    for _, batch in zip(range(watch.last), loader):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        watch.step()


_RUN: Dict[str, Callable[[Case, Any, Tokens, Stopwatch], None]] = {
    "plain": _plain,
    "trainer": _trainer,
    "lightning": _lightning,
    "accelerate": _accelerate,
}


def measure(case: Case, loop: str) -> Json:
    """In the process that calls it."""
    torch.set_float32_matmul_precision("highest")
    model = _model(case)
    tensors = sum(1 for parameter in model.parameters() if parameter.requires_grad)
    watch = Stopwatch()
    _RUN[loop](case, model, Tokens(case, model.config.vocab_size), watch)
    return {"case": case.name, "loop": loop, "precision": case.precision, "batch": case.batch, "length": case.length,
            "tensors": tensors, **watch.found}


def _measure_apart(case: Case, loop: str) -> Json:
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        return pool.apply(measure, (case, loop))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.loop_pairs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the lines here (standard output if missing)")
    parser.add_argument("--loops", default=",".join(LOOPS), help="of " + ", ".join(LOOPS))
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("forerun.loop_pairs: no CUDA GPU is visible to PyTorch; run this on a machine with one", file=sys.stderr)
        return 1
    # Imported once for all.
    multiprocessing.set_forkserver_preload(["torch", "transformers", "accelerate", "lightning"])
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(open(options.output, "w", encoding="utf-8")) if options.output else sys.stdout
        for case in CASES:
            for loop in options.loops.split(","):
                print(json.dumps(_measure_apart(case, loop)), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
