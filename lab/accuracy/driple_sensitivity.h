// How much bursts and idles depend on the workload and on the setting, and which patterns occur: what Driple's paper asks
// before it predicts anything.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace forerun {

// Of one resource: windows that are idle only, have bursts and idles in turns, or are burst only.
struct PatternCounts {
  std::string resource;
  int64_t idle = 0, alternating = 0, burst = 0;

  [[nodiscard]] int64_t all() const { return idle + alternating + burst; }
};

// One figure over the workloads of a setting: tenth, half and nine tenths of them lie below.
struct FigureSpread {
  std::string resource, figure;
  double low = 0, middle = 0, high = 0;
};

// One workload in a setting, simulated: idle, burst and amount of each resource.
struct SettingFigures {
  std::string setting;
  std::array<double, 12> figures{};
};

struct DripleSensitivity {
  std::string setting;  // that the workloads were measured in
  int64_t windows = 0, workloads = 0;
  std::vector<PatternCounts> patterns;
  std::vector<FigureSpread> spreads;
  std::string workload;  // that is simulated in other settings
  std::vector<SettingFigures> settings;
};

std::string to_text(const DripleSensitivity& sensitivity);
std::string to_json(const DripleSensitivity& sensitivity);

}  // namespace forerun
