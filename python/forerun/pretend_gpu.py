"""A process in which PyTorch finds an NVIDIA H200 that is not there, so that its compiler decides as it would on one.

`ensure()` starts the program anew with a small library before CUDA's own, in which there is one GPU with an H200's
figures, memory is handed out and nothing runs. It needs a PyTorch that was built for CUDA (no GPU, no driver), the
headers that come with it, and a C compiler. Nothing that is computed means anything: sizes, layouts and choices do.
"""
from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Iterator, List

_MARK = "FORERUN_PRETENDED_GPU"
VARIABLES = (_MARK, "LD_PRELOAD")  # of the environment: without them, a process finds no GPU

# As triton.testing works them out of an H200's clocks, units and bus.
_TFLOPS = {"bfloat16": 1070.0, "float16": 1070.0, "float32": 66.9, "tf32": 535.0}
_GB_PER_S = 4916.0

_SOURCE = r"""
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>
#undef cudaGetDeviceProperties
#undef cudaGetDriverEntryPointByVersion
#define OK { return cudaSuccess; }
static const size_t total = 150121545728ull;
static char* end = (char*)0x700000000000;
cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) OK
cudaError_t cudaDriverGetVersion(int* v) { *v = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaGetLastError(void) OK
cudaError_t cudaPeekAtLastError(void) OK
cudaError_t cudaDeviceSynchronize(void) OK
cudaError_t cudaDeviceGetAttribute(int* v, enum cudaDeviceAttr a, int d) { *v = 0; return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = 0; *high = -5; return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus* c) {
  *c = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) OK
cudaError_t cudaStreamSynchronize(cudaStream_t s) OK
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f) OK
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned f) { *e = (cudaEvent_t)8; return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) OK
cudaError_t cudaEventQuery(cudaEvent_t e) OK
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) OK
cudaError_t cudaFree(void* p) OK
cudaError_t cudaMalloc(void** p, size_t n) {
  *p = end;
  end += (n + 0x1fffff) / 0x200000 * 0x200000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* left, size_t* all) { *left = *all = total; return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, enum cudaMemcpyKind k, cudaStream_t t) OK
cudaError_t cudaMemsetAsync(void* d, int v, size_t n, cudaStream_t s) OK
cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s) OK
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) {
  memset(p, 0, sizeof *p);
  strcpy(p->name, "NVIDIA H200");
  p->totalGlobalMem = total;
  p->major = 9;
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 232448;
  p->sharedMemPerMultiprocessor = 233472;
  p->l2CacheSize = 62914560;
  p->memoryBusWidth = 6144;
  return cudaSuccess;
}
CUresult cuInit(unsigned f) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* v) { *v = CUDART_VERSION; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int n) { *d = n; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* n) { *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice d) { *v = 0; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned* f, int* on) { *f = 0; *on = 1; return CUDA_SUCCESS; }
static CUresult nothing(void) { return CUDA_SUCCESS; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned v, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* found) {
  *f = strcmp(name, "cuDevicePrimaryCtxGetState") == 0 ? (void*)cuDevicePrimaryCtxGetState : (void*)nothing;
  if (found) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
"""


class NoPretending(Exception):
    """What is missing, and how to get it."""


def _include_folders() -> List[str]:
    """Where CUDA's headers lie: in the package of its runtime, and what that lacks in Triton's."""
    found = []
    for package, folder in (("nvidia", "cu13/include"), ("nvidia", "cuda_runtime/include"),
                            ("triton", "backends/nvidia/include")):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            headers = pathlib.Path(place) / folder
            if headers.is_dir():
                found.append(str(headers))
    if not found:
        raise NoPretending("CUDA's headers are missing; install a PyTorch that was built for CUDA, with what it needs "
                           "(pip install torch==2.11.0)")
    return found


def library() -> pathlib.Path:
    """The library, made once for each version of it."""
    folders = _include_folders()
    digest = hashlib.sha256((_SOURCE + "".join(folders)).encode()).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir()) / f"forerun-pretended-gpu-{os.getuid()}-{digest}"
    made = folder / "libcuda.so.1"
    if made.is_file():
        return made
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        source, output = pathlib.Path(fresh) / "gpu.c", pathlib.Path(fresh) / "libcuda.so.1"
        source.write_text(_SOURCE)
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-w", *(f"-I{path}" for path in folders),
                   "-Wl,-soname,libcuda.so.1", str(source), "-o", str(output)]
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError as error:
            raise NoPretending(f"there is no C compiler ({error.filename}); name one in CC") from None
        if done.returncode != 0:
            raise NoPretending(f"the C compiler failed: {done.stderr[:500]}")
        output.replace(made)
    return made


def ensure(module: str) -> None:
    """Comes back in a process that has the GPU; `module` is what `python -m` starts again."""
    if os.environ.get(_MARK):
        return
    import torch

    if torch.version.cuda is None:
        raise NoPretending("this PyTorch was not built for CUDA; install one that was (pip install torch==2.11.0)")
    made = library()
    paths = [str(made.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = {**os.environ, _MARK: "1", "LD_PRELOAD": str(made), "LD_LIBRARY_PATH": ":".join(paths)}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


class _Driver:
    """What Triton asks its driver while code is generated."""

    def get_current_target(self) -> Any:
        return importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)


def _tflops(dtype: Any) -> float:
    import torch

    name = str(dtype).replace("torch.", "")
    return _TFLOPS["tf32" if name == "float32" and torch.backends.cuda.matmul.allow_tf32 else name]


def _padding_pays(key: str, plain_time: float, padded_time: float) -> bool:
    """Whether a product at an odd size is faster padded, which Inductor measures: on tensor cores it was found so."""
    return "bfloat16" in key or "float16" in key


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """While inside, Inductor generates code for that GPU. Constants that it folds are computed on the CPU, where they
    have a value; what it would measure is assumed."""
    import torch
    from torch._inductor import utils
    from torch._inductor.fx_passes import pad_mm
    from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder as Folder

    modes: Any = importlib.import_module("torch.utils._python_dispatch")

    class OnCpu(modes.TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if named.get("device") is not None:
                named["device"] = torch.device("cpu")
            return op(*args, **named)

    def on_cpu(method: Any) -> Any:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            with OnCpu():
                return method(self, *args, **kwargs)

        return wrapped

    replaced = [
        (Folder, "run", on_cpu(Folder.run)), (Folder, "_add_peephole_patterns", on_cpu(Folder._add_peephole_patterns)),
        (utils, "get_device_tflops", _tflops), (utils, "get_gpu_dram_gbps", lambda: _GB_PER_S),
        (pad_mm, "get_do_bench", lambda: lambda run: 1.0), (pad_mm, "is_padded_faster", _padding_pays),
    ]
    plain = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    importlib.import_module("triton").runtime.driver.set_active(_Driver())
    for owner, name, made in replaced:
        setattr(owner, name, made)
    try:
        yield
    finally:
        for owner, name, made in plain:
            setattr(owner, name, made)
