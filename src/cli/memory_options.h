// Options about memory: the allocator's settings and data-parallel training. Shared by predict and fit.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "predict/predicted_memory.h"

namespace forerun::cli {

struct MemoryOptions {
  std::string allocator;  // "expandable_segments:True"
  bool ddp = false;
  bool bucket_views = false;
  int zero = 0;
  int64_t gpus = 0;  // 0: not given
};

void add_memory_options(CLI::App& verb, MemoryOptions& options);

// Files that show the memory of one iteration; empty: not written.
struct MemoryFiles {
  std::string svg, chrome, snapshot;
  [[nodiscard]] bool any() const { return !svg.empty() || !chrome.empty() || !snapshot.empty(); }
};

void add_memory_files(CLI::App& verb, MemoryFiles& files);

Status write_memory_files(const MemoryFiles& files, const TrainingRun& run, const Device& device,
                          const WorkspaceTable& workspaces, const MemoryQuestion& question);

// What the options mean.
Result<MemoryQuestion> parse_memory(const MemoryOptions& options);

}  // namespace forerun::cli
