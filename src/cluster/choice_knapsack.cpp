#include "cluster/choice_knapsack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace forerun::cluster {
namespace {

constexpr double kValueSteps = 1 << 20;
constexpr double kMostValue = 1e9;  // so that sums of millions fit

}  // namespace

int64_t knapsack_value(double value) { return std::llround(std::clamp(value, 0.0, kMostValue) * kValueSteps); }
double from_knapsack_value(int64_t value) { return static_cast<double>(value) / kValueSteps; }

std::optional<ChoiceKnapsack> ChoiceKnapsack::solve(std::vector<KnapsackChooser> choosers,
                                                    const std::vector<int32_t>& room, size_t most_steps) {
  int32_t unit = 0;
  size_t options = 1;
  std::vector<int64_t> asked(room.size(), 0);  // no more is ever needed
  for (const KnapsackChooser& chooser : choosers) {
    std::vector<int32_t> most(room.size(), 0);
    for (const KnapsackOption& option : chooser) {
      CHECK(option.gpus > 0 && option.value > 0, "an option that takes or is worth nothing");
      unit = std::gcd(unit, option.gpus);
      most[option.type] = std::max(most[option.type], option.gpus);
    }
    options += chooser.size() + 1;
    for (size_t type = 0; type < room.size(); ++type) asked[type] += most[type];
  }
  unit = std::max(unit, 1);
  ChoiceKnapsack knapsack;
  size_t states = 1;
  std::vector<size_t> places;  // by type
  for (size_t type = 0; type < room.size(); ++type) {
    const int64_t useful = std::min<int64_t>(std::max(room[type], 0), asked[type]) / unit;
    places.push_back(static_cast<size_t>(useful) + 1);
    knapsack.strides_.push_back(states);
    if (states > most_steps / places.back()) return std::nullopt;
    states *= places.back();
  }
  if (states > most_steps / options) return std::nullopt;
  for (size_t type = 0; type < room.size(); ++type) {
    knapsack.left_.emplace_back(states);
    for (size_t state = 0; state < states; ++state) {
      knapsack.left_[type][state] = static_cast<int32_t>(state / knapsack.strides_[type] % places[type]);
    }
  }
  knapsack.choosers_ = std::move(choosers);
  for (KnapsackChooser& chooser : knapsack.choosers_) {
    for (KnapsackOption& option : chooser) option.gpus /= unit;
  }
  knapsack.pick();
  return knapsack;
}

ChoiceKnapsack::Sums ChoiceKnapsack::with(const KnapsackChooser& chooser, const Sums& others) const {
  Sums sums = others;
  for (const KnapsackOption& option : chooser) {
    for (size_t state = 0; state < sums.size(); ++state) {
      if (!fits(option, state)) continue;
      sums[state] = std::max(sums[state], others[without(option, state)] + option.value);
    }
  }
  return sums;
}

void ChoiceKnapsack::pick() {
  const size_t states = left_.empty() ? 1 : left_.front().size();
  best_from_.assign(choosers_.size() + 1, Sums(states, 0));
  for (size_t i = choosers_.size(); i-- > 0;) best_from_[i] = with(choosers_[i], best_from_[i + 1]);
  size_t state = states - 1;
  for (size_t i = 0; i < choosers_.size(); ++i) {
    picks_.push_back(-1);
    for (size_t k = 0; k < choosers_[i].size() && picks_.back() < 0; ++k) {
      const KnapsackOption& option = choosers_[i][k];
      if (!fits(option, state)) continue;
      if (best_from_[i + 1][without(option, state)] + option.value < best_from_[i][state]) continue;
      picks_.back() = static_cast<int>(k);
      state = without(option, state);
    }
  }
}

std::vector<int64_t> ChoiceKnapsack::totals_without() const {
  const size_t states = best_from_.back().size();
  Sums before(states, 0);  // of those before a chooser
  std::vector<int64_t> totals;
  for (size_t i = 0; i < choosers_.size(); ++i) {
    int64_t most = 0;
    for (size_t state = 0; state < states; ++state) {
      most = std::max(most, before[state] + best_from_[i + 1][states - 1 - state]);  // the rest of the room
    }
    totals.push_back(most);
    before = with(choosers_[i], before);
  }
  return totals;
}

}  // namespace forerun::cluster
