// What predictors of distributed training's resources learn from: workloads in a setting, and twelve numbers of each.
//
// A workload is a training iteration (an Example of the data set `iterations`, for those who look at the graph) and a
// row of columns (for those who look at figures). Measured numbers stand in `windows`, one for each time that it was
// measured, and their mean in `measured`. Of a number that no record tells (`judged` is false) simulated ones stand there,
// to learn from. Simulated workloads, for pre-training, have the setting "sim:P1w2-10G" and simulated numbers in place
// of measured ones. Needs no LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/dataset/dataset.h"

namespace forerun::learn {

// GPU utilisation, GPU memory utilisation, network send, network receive; of each idle time, burst time (ms), amount.
inline constexpr size_t kResourceMetrics = 12;
using ResourceMetrics = std::array<double, kResourceMetrics>;

inline constexpr std::array<const char*, 4> kResourceNames = {"gpu", "memory", "send", "receive"};
inline constexpr std::array<const char*, 3> kFigureNames = {"idle", "burst", "amount"};

using JudgedMetrics = std::array<bool, kResourceMetrics>;
constexpr JudgedMetrics all_judged() {
  JudgedMetrics judged{};
  judged.fill(true);
  return judged;
}

// Where the numbers of a workload come from: windows of a setting as they came; those of them in which links were shared
// in one way, which nobody knows beforehand; or the simulation, of a setting that nobody measured.
enum class Labels : uint8_t { measured, divided, simulated };
inline constexpr std::array<const char*, 3> kLabelNames = {"measured", "divided", "simulated"};

struct ResourceWorkload {
  std::string id;
  std::string family;
  std::string model;    // "resnet50-narrow"
  std::string setting;  // "P1w2-10G"
  std::string mode;     // sync, async, allreduce
  Labels labels = Labels::measured;
  Split split = Split::train;
  uint32_t example = 0;         // of ResourceData::iterations
  std::vector<float> globals;   // of the whole workload, for a network: about -2 to 2 each
  std::vector<float> columns;   // for trees
  ResourceMetrics simulated{};  // event by event
  ResourceMetrics formulas{};   // what a few lines of arithmetic say
  ResourceMetrics measured{};   // mean of the windows
  JudgedMetrics judged = all_judged();
  std::vector<ResourceMetrics> windows;
};

inline constexpr const char* kSimulatedPrefix = "sim:";  // to pre-train on
inline constexpr const char* kUnmeasuredSuffix =
    " (simulated)";  // of a setting that is judged though nobody measured it

struct ResourceData {
  DataSet iterations;
  std::vector<ResourceWorkload> workloads;
  std::vector<std::string> column_names;
  std::string source;
};

// Adds a window of a workload that was measured once more, and renews the mean.
inline void add_window(ResourceWorkload& workload, const ResourceMetrics& window) {
  workload.windows.push_back(window);
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    double sum = 0;
    for (const ResourceMetrics& each : workload.windows) sum += each[m];
    workload.measured[m] = sum / static_cast<double>(workload.windows.size());
  }
}

// Workloads of a setting in a split, in order.
inline Selection select_workloads(const ResourceData& data, const std::string& setting, Split split) {
  Selection chosen;
  for (uint32_t i = 0; i < data.workloads.size(); ++i) {
    if (data.workloads[i].setting == setting && data.workloads[i].split == split) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace forerun::learn
