#include "lab/dataset/driple/resource_predictor.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "base/check.h"
#include "base/statistics.h"

namespace forerun::learn {
namespace {

// FNV-1a, mixed with a seed: an order of families that has nothing to do with what they are.
uint64_t family_hash(const std::string& family, uint64_t seed) {
  uint64_t hash = 1469598103934665603ULL ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char c : family) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

ResourceFold resource_fold(const ResourceData& data, const Selection& from, uint64_t seed, double share) {
  std::map<std::string, size_t> counts;
  for (const uint32_t i : from) ++counts[data.workloads[i].family];
  std::vector<std::string> families;
  for (const auto& [family, count] : counts) families.push_back(family);
  std::sort(families.begin(), families.end(),
            [&](const std::string& a, const std::string& b) { return family_hash(a, seed) < family_hash(b, seed); });
  std::set<std::string> aside;
  size_t taken = 0;
  for (const std::string& family : families) {
    if (static_cast<double>(taken + counts[family] / 2) >= share * static_cast<double>(from.size())) break;
    if (aside.size() + 1 == families.size()) break;
    aside.insert(family);
    taken += counts[family];
  }
  ResourceFold fold;
  for (const uint32_t i : from) {
    (aside.count(data.workloads[i].family) > 0 ? fold.validation : fold.training).push_back(i);
  }
  return fold;
}

ResourceMetrics resource_errors(const ResourceData& data, const Selection& workloads,
                                const std::vector<ResourceMetrics>& predicted) {
  CHECK(workloads.size() == predicted.size(), "every workload has a prediction");
  ResourceMetrics sums{};
  std::array<double, kResourceMetrics> counts{};
  for (size_t i = 0; i < workloads.size(); ++i) {
    const ResourceMetrics& measured = data.workloads[workloads[i]].measured;
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      if (measured[m] <= 0 || !data.workloads[workloads[i]].judged[m]) continue;
      sums[m] += std::abs(predicted[i][m] - measured[m]) / measured[m];
      counts[m] += 1;
    }
  }
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    sums[m] = counts[m] > 0 ? sums[m] / counts[m] : std::numeric_limits<double>::quiet_NaN();
  }
  return sums;
}

double mean_of(const ResourceMetrics& errors) {
  std::vector<double> judged;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(judged), [](double e) { return !std::isnan(e); });
  return judged.empty() ? 0 : mean(judged);
}

}  // namespace forerun::learn
