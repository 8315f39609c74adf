#include "ingest/trace/communication_names.h"

#include <string>

namespace forerun {
namespace {

// Parts of names as kernels have them, in lower case and without "_": "all_reduce" and "AllReduce" are one.
constexpr std::string_view kCommunicationParts[] = {
    // libraries
    "nccl", "rccl", "msccl", "oneccl", "nvshmem", "rocshmem", "gloo::", "ucx",
    // collectives by what they do: customAllReduce of TensorRT-LLM and FlashInfer (oneShotAllReduceKernel,
    // allreduce_fusion_kernel_oneshot_lamport), PyTorch's symmetric memory (two_shot_all_reduce_kernel), quickreduce
    "allreduce", "allgather", "reducescatter", "alltoall",
    "crossdevicereduce",  // vLLM, SGLang, AITER
    "multimem",           // PyTorch's symmetric memory over NVLink SHARP: multimem_all_gather_kernel
    "lamport",            // TensorRT-LLM and FlashInfer: waits for the other GPUs' values themselves
    "userbuffers",        // Transformer Engine: kuserbuffers_pushrecv, userbuffers_fp16_sum_inplace_gpu_rw_ag
    // tokens sent to experts and back
    "a2adispatch", "a2acombine",      // TensorRT-LLM: moeA2ADispatchKernel
    "epdispatchint", "epcombineint",  // MoRI: EpDispatchIntraNodeKernel, EpDispatchInterNodeKernel
    "deepep::intranode", "deepep::internode", "deepep::dispatch", "deepep::combine",  // DeepEP, with internode_ll
};

std::string folded(std::string_view name) {
  std::string text;
  text.reserve(name.size());
  for (const char c : name) {
    if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

// "smallReduce" is no all-reduce.
bool has_part(const std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const bool small = at >= 2 && text.compare(at - 2, 2, "sm") == 0 && part.starts_with("all");
    if (!small) return true;
  }
  return false;
}

}  // namespace

bool names_communication(std::string_view kernel) {
  const std::string text = folded(kernel);
  for (const std::string_view part : kCommunicationParts) {
    if (has_part(text, part)) return true;
  }
  return false;
}

std::vector<bool> communicating_kernels(const Trace& trace) {
  std::vector<bool> known(trace.names.size()), communicates(trace.names.size());
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const size_t name = trace.events.name[i].value;
    if (trace.events.kind[i] != EventKind::kernel || known[name]) continue;
    known[name] = true;
    communicates[name] = names_communication(trace.name(i));
  }
  return communicates;
}

bool names_group_call(std::string_view call) {
  for (const std::string_view start : {"nccl:", "rccl:", "gloo:", "mpi:", "ucc:"}) {
    if (call.starts_with(start)) return true;
  }
  return call == "record_param_comms";
}

}  // namespace forerun
