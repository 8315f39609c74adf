// Which kernels and calls communicate between GPUs, by their names: the one list of them.
//
// Libraries of collectives name their kernels after themselves (NCCL, RCCL, MSCCL, oneCCL, NVSHMEM); those that inference
// and mixture-of-experts code brings along (vLLM, SGLang, AITER, TensorRT-LLM, FlashInfer, DeepEP, MoRI, Transformer
// Engine's user buffers, PyTorch's symmetric memory) after what they do. Left out: kernels whose names say neither.
#pragma once

#include <string_view>
#include <vector>

#include "ingest/trace/trace.h"

namespace forerun {

// Of a kernel: "ncclDevKernel_AllReduce...", "void deep_ep::internode_ll::dispatch<...>", "vllm::cross_device_reduce_2stage".
bool names_communication(std::string_view kernel);
// The same by NameId, of the names that kernels of the trace have.
std::vector<bool> communicating_kernels(const Trace& trace);

// Of a mark that a process group puts around its launches: "nccl:all_reduce", "record_param_comms". What is launched there
// communicates whatever its name.
bool names_group_call(std::string_view call);

}  // namespace forerun
