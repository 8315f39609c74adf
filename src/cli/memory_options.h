// Options about memory: the allocator's settings and data-parallel training. Shared by predict and fit.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "api/predict.h"
#include "base/result.h"

namespace forerun::cli {

using MemoryOptions = MemoryText;

void add_memory_options(CLI::App& verb, MemoryOptions& options);

// Files that show the memory of one iteration; empty: not written.
struct MemoryFiles {
  std::string svg, chrome, snapshot;
  [[nodiscard]] bool any() const { return !svg.empty() || !chrome.empty() || !snapshot.empty(); }
};

void add_memory_files(CLI::App& verb, MemoryFiles& files);

// `answer` must have its memory log. Of the compiled run where one was asked for.
Status write_memory_files(const MemoryFiles& files, const PredictAnswer& answer);

}  // namespace forerun::cli
