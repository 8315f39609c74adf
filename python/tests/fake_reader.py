"""A reader of networks without a device, for the tests of `forerun.calibrate`."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, List

import torch


class FakeReader:
    """An op a network; the second kills its process, the fourth fails, the fifth does not fit."""

    def read(self, number: int) -> List[Dict[str, Any]]:
        time.sleep(0.05)
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 4:
            raise RuntimeError("no kernel image is available")
        if number == 5:
            raise torch.cuda.OutOfMemoryError("too large")
        return [{"schema": "op/1", "id": f"calibration/{number}", "op": "aten.relu.default", "precision": "fp32",
                 "inputs": [["float32", [number + 1], None]], "outputs": [["float32", [number + 1], None]],
                 "attributes": {}, "us": 2.5, "spread": 0, "kernels": [["", 2.0, 1]], "status": "ok"}]
