// Drawing: random values that samplers of networks are made of. The same for a seed on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace forerun::simulation {

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  double uniform(double low = 0, double high = 1) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  bool chance(double probability) { return uniform() < probability; }
  // From `low` to `high`, both among them.
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  // The same, each doubling as likely as the next.
  int64_t log_integer(int64_t low, int64_t high) {
    const double drawn = std::exp(uniform(std::log(static_cast<double>(low)), std::log(static_cast<double>(high))));
    return std::clamp<int64_t>(std::llround(drawn), low, high);
  }
  // The same, a multiple of `step`, of which `low` and `high` are multiples too.
  int64_t log_multiple(int64_t low, int64_t high, int64_t step) { return step * log_integer(low / step, high / step); }
  // A normal number of mean 0 and deviation 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  template <class T>
  T weighted(std::initializer_list<std::pair<T, double>> choices) {
    double sum = 0;
    for (const auto& [choice, weight] : choices) sum += weight;
    double at = uniform(0, sum);
    for (const auto& [choice, weight] : choices) {
      if (at < weight) return choice;
      at -= weight;
    }
    return std::prev(choices.end())->first;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace forerun::simulation
