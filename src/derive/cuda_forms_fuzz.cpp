// Fuzzes the mapping to CUDA forms: the input is the bytes of a plain .jsonl file of run records, all taken for captures
// made without a GPU. What is mapped must verify, whatever the device.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "derive/cuda_forms.h"
#include "ingest/capture/run_record.h"

namespace {

void expect_sound(const forerun::Result<forerun::Graph>& graph) {
  if (!graph.ok()) {
    CHECK(!graph.error().what.empty(), "an error without what");
    return;
  }
  CHECK(forerun::verify(*graph).ok(), "the mapping gave a graph that does not verify");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto reader = forerun::RunRecordReader::from_text(text, "fuzz", forerun::Fields::inputs);
  while (true) {
    const auto record = reader.next();
    if (!record.ok()) continue;
    if (!record->has_value()) return 0;
    if (!(*record)->has_graph) continue;
    const forerun::Graph& graph = (*record)->run.graph;
    expect_sound(forerun::derive::to_cuda_forms(graph, {.cudnn_attention = true}));
    expect_sound(forerun::derive::to_cuda_forms(graph, {.cudnn_attention = false}));
    expect_sound(forerun::derive::with_forms(graph));
  }
}
