// Fuzzes the files of the memory model: the first byte picks the file, the rest is it. What is read must answer.
#include <cstdint>
#include <string_view>

#include "base/fuzz_file.h"
#include "memory/convolution_cases.h"
#include "memory/memory_intervals.h"
#include "memory/workspace_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto check_error = [](const auto& read) {
    CHECK(read.ok() || !read.error().what.empty(), "an error without what");
  };
  ConvolutionShape shape;
  if (data[0] % 3 == 0) {
    const auto cases = ConvolutionCases::parse(bytes, "fuzz");
    check_error(cases);
    if (!cases.ok()) return 0;
    for (const ConvolutionPass pass :
         {ConvolutionPass::convolution, ConvolutionPass::input_gradient, ConvolutionPass::weight_gradient}) {
      const std::optional<int64_t> answer = cases->bytes(pass, shape);
      CHECK(!answer || *answer >= 0, "a workspace below 0 bytes");
    }
    return 0;
  }
  const FuzzFile file(bytes.data(), bytes.size());
  if (data[0] % 3 == 1) {
    const auto table = WorkspaceTable::load(file.path());
    check_error(table);
    if (table.ok()) CHECK(table->recurrent({}) >= 0, "a workspace below 0 bytes");
  } else {
    check_error(load_memory_intervals(file.path()));
  }
  return 0;
}
