// How fast a profiler trace is read: JSON per second, and memory per byte of JSON.
//
// The file is decompressed beforehand, so that it is the reader that is measured. What was read is looked at before its
// time counts. Memory is the peak while reading above what was resident; where the system does not let the peak be reset,
// it is that of the whole process.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/check.h"
#include "ingest/kineto/kineto_reader.h"

namespace forerun::bench {

// Bytes resident now ("VmRSS") or at most since the last reset ("VmHWM").
inline double resident_bytes(const std::string& what) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind(what, 0) == 0) return std::stod(line.substr(what.size() + 1)) * 1024.0;
  }
  return 0;
}

inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A profiler trace, decompressed beforehand, read into columns. Memory is the peak while reading above what was resident.
inline bool time_trace(const std::string& compressed) {
  if (!std::filesystem::exists(compressed)) {
    fmt::print("reading a trace: not measured, {} is absent\n", compressed);
    return true;
  }
  const std::filesystem::path plain = std::filesystem::temp_directory_path() / "forerun_bench_trace.json";
  {
    auto source = ByteSource::open(compressed);
    CHECK(source.ok(), source.error().message());
    std::ofstream out(plain, std::ios::binary);
    std::vector<char> block(1U << 16);
    while (true) {
      const auto count = (*source)->read(block.data(), block.size());
      if (!count || *count == 0) break;
      out.write(block.data(), static_cast<std::streamsize>(*count));
    }
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(plain)) * 1e-6;
  double best = 1e9, best_processor = 1e9, memory = 0;
  size_t events = 0;
  for (int i = 0; i < 5; ++i) {
    std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM begins anew
    const double before = resident_bytes("VmRSS:");
    const double processor = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    const Result<Trace> trace = read_kineto(plain.string());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    best_processor = std::min(best_processor, processor_seconds() - processor);
    if (i == 0) memory = resident_bytes("VmHWM:") - before;
    if (!trace || trace->size() == 0 || trace->counts.skipped + trace->counts.repaired > 0) {
      fmt::print("{}: not read whole\n", compressed);
      return false;
    }
    events = trace->size();
  }
  std::filesystem::remove(plain);
  fmt::print(
      "{:<34}{:>10.0f} MB/s {:>12.0f} MB per processor second, {:.2f} bytes of memory per JSON byte, {} events\n",
      fmt::format("read a trace of {:.0f} MB", megabytes), megabytes / best, megabytes / best_processor,
      memory * 1e-6 / megabytes, events);
  return true;
}

}  // namespace forerun::bench
