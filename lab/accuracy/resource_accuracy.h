// How far simulated bursts and idles are from measured ones: mean percentage errors by resource and metric.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace forerun {

// Idle duration, burst duration, burst amount of one resource.
struct BurstCase {
  std::string setting;  // "P1w2-10G sync"
  std::string resource;
  std::array<double, 3> measured = {};
  std::array<double, 3> simulated = {};
  bool unseen = false;  // of a model family that nothing was fitted to
};

struct ResourceAccuracy {
  std::string title;
  std::vector<BurstCase> cases;
  int64_t records = 0;
  int64_t passed_over = 0;  // failed runs, records without metrics, models that cannot be built

  // Mean of |simulated - measured| / measured over cases whose measured value is above zero.
  [[nodiscard]] double mean_error(const std::string& resource, size_t metric, bool unseen_only = false) const;
};

std::string to_text(const ResourceAccuracy& accuracy);
std::string to_json(const ResourceAccuracy& accuracy);

}  // namespace forerun
