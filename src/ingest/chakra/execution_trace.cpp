#include "ingest/chakra/execution_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/byte_source.h"

namespace forerun {
namespace {

constexpr size_t kLargestExecutionTrace = size_t{1} << 31;  // bytes, decompressed

// `partial`: of a file that cannot be read to its end, what came before.
Result<std::string> read_at_most(const std::string& path, size_t most, bool partial, bool* more) {
  auto source = ByteSource::open(path);
  if (!source) return source.error();
  std::string bytes;
  constexpr size_t kPiece = size_t{1} << 20;
  while (bytes.size() < most) {
    const size_t had = bytes.size();
    bytes.resize(std::min(most, had + kPiece));
    const auto got = (*source)->read(bytes.data() + had, bytes.size() - had);
    if (!got && !partial) return got.error();
    bytes.resize(had + (got ? *got : 0));
    if (!got || *got == 0) return bytes;
  }
  if (more != nullptr) {
    char one = 0;
    const auto got = (*source)->read(&one, 1);
    *more = got.ok() && *got > 0;
  }
  return bytes;
}

size_t behind_blanks(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
  return at;
}

// Five whole numbers and the beginning of a string behind a '[': a tensor. Its bytes, or -1.
int64_t tensor_at(std::string_view text, size_t at) {
  std::array<int64_t, 5> numbers{};
  for (int64_t& number : numbers) {
    at = behind_blanks(text, at);
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (error != std::errc()) return -1;
    at = behind_blanks(text, static_cast<size_t>(end - text.data()));
    if (at >= text.size() || text[at] != ',') return -1;
    ++at;
  }
  at = behind_blanks(text, at);
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return -1;
  constexpr int64_t kMost = int64_t{1} << 45;
  if (numbers[3] < 0 || numbers[3] > kMost || numbers[4] < 0 || numbers[4] > 64) return -1;
  return numbers[3] * numbers[4];
}

}  // namespace

std::string_view name_of(NodeKind kind) {
  constexpr std::array<std::string_view, kNodeKinds> kNames = {"label",         "op",   "kernel", "memory",
                                                               "communication", "other"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t tensor_bytes(std::string_view values) {
  int64_t sum = 0;
  for (size_t at = values.find('['); at != std::string_view::npos; at = values.find('[', at + 1)) {
    const int64_t bytes = tensor_at(values, at + 1);
    if (bytes > 0 && sum < (int64_t{1} << 60)) sum += bytes;
  }
  return sum;
}

NodeKind kind_of_name(std::string_view name) {
  if (name.starts_with("[") || name.starts_with("##") || name.starts_with("ProfilerStep") ||
      name.starts_with("Optimizer.") || name.starts_with("DataLoader") || name.starts_with("enumerate(")) {
    return NodeKind::label;
  }
  for (const std::string_view start : {"nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "record_param_comms"}) {
    if (name.starts_with(start)) return NodeKind::communication;
  }
  return NodeKind::op;
}

Result<ExecutionTrace> execution_trace_from_bytes(std::string_view bytes, const std::string& name) {
  const size_t at = behind_blanks(bytes, 0);
  if (at >= bytes.size()) return Error{"the file is empty", name, "record the trace again"};
  const bool json = bytes[at] == '{' || bytes[at] == '[';
  return json ? parse_pytorch_nodes(bytes, name) : parse_chakra_nodes(bytes, name);
}

Result<ExecutionTrace> read_execution_trace(const std::string& path, bool partial) {
  bool more = false;
  const auto bytes = read_at_most(path, kLargestExecutionTrace, partial, &more);
  if (!bytes) return bytes.error();
  if (more) return Error{"more than 2 GiB of execution trace", path, "record fewer iterations"};
  auto trace = execution_trace_from_bytes(*bytes, path);
  if (!trace || !trace->truncated || partial) return trace;
  return Error{fmt::format("the file is truncated: it ends at byte {} within a node, after {} whole ones",
                           bytes->size(), trace->nodes.size()),
               path, "copy or record it again; `forerun trace --partial` reads what is there"};
}

}  // namespace forerun
