#include "report/memory_answer.h"

#include <fmt/format.h>

#include "report/table.h"

namespace forerun {
namespace {

std::string range_text(const MemoryRange& range, const char* what) {
  return fmt::format("{} to {} {}", size_text(range.low), size_text(range.high), what);
}

std::string live_text(const std::vector<LiveShare>& shares) {
  Table table({"largest then", "kind", "blocks", "size", "largest is of"});
  table.align_left(1);
  table.align_left(4);
  for (const LiveShare& share : shares) {
    table.add({share.module.empty() ? "(outside any module)" : share.module, std::string(name_of(share.use)),
               grouped(share.count), size_text(Bytes(share.bytes)), share.what});
  }
  return table.text("    ");
}

}  // namespace

std::string_view text_of(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::fits: return "fits";
    case FitVerdict::may_not_fit: return "may not fit";
    case FitVerdict::does_not_fit: return "does not fit";
  }
  return "?";
}

std::string size_text(Bytes bytes) {
  const double mib = static_cast<double>(bytes.value) / (1024.0 * 1024.0);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

std::vector<std::pair<std::string, Bytes>> parts_of(const MemoryEstimate& m, const MemoryAnswer& answer,
                                                    Bytes context) {
  std::vector<std::pair<std::string, Bytes>> parts;
  const std::pair<const char*, Bytes> all[] = {{"parameters", m.parameters},
                                               {"gradients", m.gradients},
                                               {"optimizer state", m.optimizer_state},
                                               {"activations", m.activations},
                                               {"temporaries", m.temporaries},
                                               {"gathered by FSDP", answer.gathered},
                                               {"inputs", m.inputs},
                                               {"buffers", m.buffers},
                                               {"gradient buckets", answer.buckets},
                                               {"workspaces", m.workspaces},
                                               {"fragmentation", answer.fragmentation},
                                               {"CUDA context", context}};
  for (const auto& [name, size] : all) {
    if (size.value > 0) parts.emplace_back(name, size);
  }
  return parts;
}

std::string moment_text(const PeakMoment& peak) {
  if (peak.op.empty()) return fmt::format("iteration {}, between ops", peak.iteration + 1);
  return fmt::format("iteration {}, {}: {}{}", peak.iteration + 1, peak.phase, peak.op,
                     peak.module.empty() ? "" : " in " + peak.module);
}

std::string parallel_text(const DataParallel& plan) {
  if (!plan.any()) return "";
  if (plan.zero >= 2) return fmt::format("ZeRO {} (FSDP) on {} GPUs", plan.zero, plan.gpus);
  return fmt::format("{} on {} GPUs{}", plan.zero == 1 ? "ZeRO 1 (DDP, ZeroRedundancyOptimizer)" : "DDP", plan.gpus,
                     plan.bucket_views ? ", gradients as bucket views" : "");
}

std::string memory_text(const MemoryEstimate& estimate, const MemoryAnswer& answer, Bytes context) {
  std::string text;
  if (answer.parallel.any()) text += fmt::format("  per GPU, with {}\n", parallel_text(answer.parallel));
  if (!answer.allocator.empty()) text += fmt::format("  with PYTORCH_CUDA_ALLOC_CONF={}\n", answer.allocator);
  if (answer.allocated.high > answer.allocated.low) {
    text += fmt::format("  8 of 10 such runs: {}", range_text(answer.allocated, "allocated"));
    if (!answer.at_least) text += ", " + range_text(answer.reserved, "reserved");
    text += answer.at_least ? fmt::format(", at least {} with the context\n", size_text(answer.driver.low))
                            : fmt::format(", {}\n", range_text(answer.driver, "with the context"));
  }
  if (answer.retries > 0) {
    text += fmt::format("  it gets by because the allocator gives unused segments back ({}), which costs time{}\n",
                        times_text(answer.retries),
                        answer.verdict == FitVerdict::fits ? "; so it would where runs take more than predicted" : "");
  }
  Table table({"", "at the peak"});
  for (const auto& [name, size] : parts_of(estimate, answer, context)) table.add({name, size_text(size)});
  text += table.text("    ");
  if (answer.live.empty()) return text;
  return text + fmt::format("  Peak at {}\n", moment_text(answer.peak)) + live_text(answer.live);
}

}  // namespace forerun
