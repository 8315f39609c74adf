"""Models of one's own: a torch.nn.Module captured by the question itself, records, and modules that can be called."""

from __future__ import annotations

import needs_native  # noqa: F401
import needs_torch  # noqa: F401
import pytest
import torch

import forerun as fr


def build(samples: int = 8):  # type: ignore[no-untyped-def]
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    return model, optimizer, (torch.randn(samples, 64), torch.randint(10, (samples,)))


def test_a_module_is_captured() -> None:
    model, optimizer, batch = build()
    prediction = fr.predict(model, optimizer=optimizer, batch=batch, gpu="t4")
    assert prediction.batch == 8 and prediction.parameters == sum(p.numel() for p in model.parameters())
    own = fr.capture(model, optimizer, batch)
    assert fr.predict(own, gpu="t4").json == prediction.json
    assert prediction.op_columns.height == prediction.json["ops"]


def test_capture_is_function_and_module() -> None:
    from forerun.capture import capture

    model, optimizer, batch = build()
    assert fr.capture(model, optimizer, batch, autocast="bf16")["run"]["precision"] == "amp_bf16"
    assert capture(model, optimizer, batch)["schema"].startswith("run/")
    assert fr.capture.capture is capture  # type: ignore[attr-defined]


def test_questions_move_a_module_to_other_batches() -> None:
    model, optimizer, batch = build()
    answer = fr.fit(model, optimizer=optimizer, batch=batch, gpu="t4", brief=True)
    assert answer.batch is not None and answer.batch > 1000
    own = fr.capture(model, optimizer, batch, batch_sizes=[8, 16, 24])
    assert fr.sweep(own, gpu=["t4", "h200"], batch=fr.powers(8, 32)).columns["batch"] == [8, 16, 32] * 2
    assert fr.compare(own, gpus=["t4", "h200"]).best is not None
    assert fr.whatif(own).apply("cuda_graphs").baseline_ms > 0


def test_what_is_missing_is_told() -> None:
    model, optimizer, batch = build()
    with pytest.raises(fr.InputError, match="optimizer"):
        fr.predict(model, batch=batch)
    with pytest.raises(fr.InputError, match="example"):
        fr.predict(model, optimizer=optimizer, batch=8)
    with pytest.raises(fr.InputError, match="batch_sizes"):
        fr.sweep(model, batch=[1, 2])
    with pytest.raises(fr.InputError, match="cannot be captured"):
        fr.predict(model, optimizer=optimizer, batch=batch, precision="fp7")
