"""Forerun's instruments: record a training iteration (capture), measure many (collect), time single ops (microbench).

What they write is described in docs/records.md and read by the `forerun` program. Importing the package needs no torch.
"""

__version__ = "0.1.0"
