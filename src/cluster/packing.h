// PackingModel: how fast two single-GPU jobs run when they share a GPU, against each running alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace forerun::cluster {

class PackingModel {
 public:
  // The speeds of a job of kind `a` beside one of kind `b` on a GPU type of the source, and of that one.
  void add(int32_t a, int32_t b, uint32_t type, double speed_a, double speed_b) {
    pairs_[{type, a, b}] = {speed_a, speed_b};
  }
  // Nothing where the pair was not measured or does not fit in memory.
  [[nodiscard]] std::optional<std::pair<double, double>> speeds(int32_t a, int32_t b, uint32_t type) const {
    if (const auto found = pairs_.find({type, a, b}); found != pairs_.end()) return found->second;
    if (const auto found = pairs_.find({type, b, a}); found != pairs_.end()) {
      return std::pair(found->second.second, found->second.first);
    }
    return std::nullopt;
  }
  [[nodiscard]] bool empty() const { return pairs_.empty(); }

 private:
  std::map<std::tuple<uint32_t, int32_t, int32_t>, std::pair<double, double>> pairs_;  // by type and kinds
};

}  // namespace forerun::cluster
