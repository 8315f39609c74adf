#include "cli/memory_options.h"

#include <fmt/format.h>

#include "base/output_file.h"
#include "report/memory_timeline.h"

namespace forerun::cli {

void add_memory_options(CLI::App& verb, MemoryOptions& options) {
  verb.add_option("--allocator", options.allocator,
                  "PYTORCH_CUDA_ALLOC_CONF, for instance expandable_segments:True,max_split_size_mb:128");
  verb.add_flag("--ddp", options.ddp, "Memory of one of --gpus replicas (DistributedDataParallel)");
  verb.add_flag("--bucket-view", options.bucket_views, "With --ddp: gradient_as_bucket_view=True");
  verb.add_option("--zero", options.zero,
                  "Memory of one of --gpus: 1 shards optimizer state, 2 gradients too, 3 parameters too (FSDP)")
      ->check(CLI::Range(1, 3));
  verb.add_option("--gpus", options.gpus, "GPUs of --ddp and --zero; default 8")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
}

void add_memory_files(CLI::App& verb, MemoryFiles& files) {
  verb.add_option("--memory-svg", files.svg,
                  "Write a picture of the iteration's memory, op by op; with --compile, this and the next two: of the "
                  "compiled iteration");
  verb.add_option("--memory-chrome", files.chrome,
                  "Write counters for chrome://tracing or Perfetto; an op is 1 us long");
  verb.add_option("--memory-snapshot", files.snapshot,
                  "Write a snapshot (pickle) that pytorch.org/memory_viz opens, with op and module of every block");
}

Status write_memory_files(const MemoryFiles& files, const PredictAnswer& answer) {
  const PredictedLog& predicted = answer.compiled ? *answer.compiled->memory_log : *answer.memory_log;
  const Prediction& p = answer.compiled ? answer.compiled->prediction : answer.prediction;
  std::string title = fmt::format("{}, batch {}, on {}", p.id, p.input.batch, p.gpu);
  if (answer.compiled) title += fmt::format(", torch.compile ({})", name_of(answer.compiled->mode()));
  MemoryTimeline timeline = memory_timeline(predicted.graph, predicted.log, title);
  timeline.device_memory = p.device_memory - p.context;
  if (!files.svg.empty()) {
    if (Status status = write_whole_file(files.svg, to_svg(timeline)); !status.ok()) return status;
  }
  if (!files.chrome.empty()) {
    if (Status status = write_whole_file(files.chrome, to_chrome_counters(timeline)); !status.ok()) return status;
  }
  if (files.snapshot.empty()) return {};
  return write_whole_file(files.snapshot, to_snapshot(predicted.graph, predicted.log));
}

}  // namespace forerun::cli
