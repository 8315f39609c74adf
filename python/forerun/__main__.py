"""Says which tools there are: python -m forerun"""

from __future__ import annotations

TOOLS = """\
python -m forerun.capture     record a training iteration of your model, without a GPU, for `forerun predict`
python -m forerun.collect     measure training configurations on this machine's GPU
python -m forerun.microbench  time single ops on this machine's GPU
python -m forerun.testbed     run and measure distributed training in network namespaces on this machine
python -m forerun.setup_pairs measure set-ups of one's own on this machine's GPU, and hold predictions to them
python -m forerun.iteration_ops  take single ops out of measured iterations
python -m forerun.families    print sampled configurations, a plan for forerun.collect
python -m forerun.workspace_fit  fit the table of cuDNN workspaces to what forerun.microbench measured
Each takes --help."""

if __name__ == "__main__":
    print(TOOLS)
