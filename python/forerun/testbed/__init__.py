"""Real distributed training on one machine: parameter servers and workers in network namespaces with shaped links.

    python -m forerun.testbed --settings P1w2-10G,AR4-10G --out data/mine --minutes 10

Every node is a process in a namespace of its own; the workers share this machine's one GPU (or its CPU). While a
workload trains, the GPU and the links are sampled; the records (`resources/1`, docs/distributed.md) hold the series and
the bursts and idles found in them. Needs root, Linux, torch with gloo, and a C++ compiler or the built
`forerun-testbed`.
"""
