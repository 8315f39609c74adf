// ThroughputAccuracy: predicted against measured throughput of data-parallel training, by schedule and network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forerun {

struct ThroughputCase {
  std::string network, model, schedule;
  int64_t gpus = 0;
  double measured = 0, predicted = 0;  // samples a second, of all GPUs
  bool fitted = false;                 // the bandwidth was fitted to this row
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

// What a link was found to carry.
struct FittedLink {
  std::string network, model, architecture;  // model: empty where all share it
  double gb_per_second = 0, line_rate = 0;
};

struct ThroughputAccuracy {
  std::string data;  // what was judged on
  std::vector<ThroughputCase> cases;
  std::vector<FittedLink> links;
  double one_bandwidth_error = 0;  // mean of the rows that nothing was fitted to, where models share a bandwidth

  // Mean of the errors' sizes: of all rows, or of those that nothing was fitted to.
  [[nodiscard]] double mean_error(bool with_fitted) const;
};

std::string to_text(const ThroughputAccuracy& accuracy);
std::string to_json(const ThroughputAccuracy& accuracy);  // one object

}  // namespace forerun
