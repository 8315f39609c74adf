#include "compile/step_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "derive/op_class.h"

namespace forerun::compile {
namespace {

// Several pieces of a model: a pass runs when all that it reads is there, which may be behind what stood among its ops. `steps` as in the
// eager iteration; of those that can run, the one that stood first there.
class StepSorter {
 public:
  StepSorter(const Graph& eager, const std::vector<CompiledRound>& rounds, const std::vector<Step>& steps)
      : eager_(eager), unit_of_(eager.op_count()) {
    std::unordered_map<size_t, size_t> unit_of_pass;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (i == 0 || step.kernel == nullptr || steps[i - 1].kernel == nullptr || steps[i - 1].pass != step.pass) {
        units_.push_back({.first = i, .count = 0});
        if (step.kernel != nullptr) unit_of_pass[step.pass] = units_.size() - 1;
      }
      ++units_.back().count;
      if (step.kernel == nullptr) unit_of_[step.op] = units_.size() - 1;
    }
    for (size_t op = 0; op < eager.op_count(); ++op) {
      const std::optional<size_t> pass = pass_of(rounds, op);
      if (!pass) continue;
      const auto known = unit_of_pass.find(*pass);
      unit_of_[op] = known == unit_of_pass.end() ? kNone : known->second;
    }
  }

  std::vector<Step> sorted(const std::vector<Step>& steps) {
    find_needs();
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      if (units_[unit].needs == 0) ready.push(unit);
    }
    std::vector<Step> order;
    order.reserve(steps.size());
    while (!ready.empty()) {
      const Unit& unit = units_[ready.top()];
      ready.pop();
      for (size_t i = 0; i < unit.count; ++i) order.push_back(steps[unit.first + i]);
      for (const size_t user : unit.users) {
        if (--units_[user].needs == 0) ready.push(user);
      }
    }
    return order;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  // Steps that run one after the other: those of a pass, or one op.
  struct Unit {
    size_t first = 0;
    size_t count = 0;
    size_t needs = 0;
    std::vector<size_t> users;
  };
  struct Storage {
    size_t writer = kNone;
    std::vector<size_t> readers;
  };

  // Whoever reads what was written runs behind, and whoever writes over what was read.
  void find_needs() {
    std::vector<Storage> storages(eager_.storages().size());
    for (size_t i = 0; i < eager_.op_count(); ++i) {
      const size_t unit = unit_of_[i];
      if (unit == kNone) continue;
      const Op& op = eager_.ops()[i];
      for (const TensorId id : eager_.inputs(op)) {
        Storage& storage = storages[eager_.tensor(id).storage.value];
        need(unit, storage.writer);
        if (storage.readers.empty() || storage.readers.back() != unit) storage.readers.push_back(unit);
      }
      if (op_class(eager_.name(op)) == OpClass::view) continue;
      for (const TensorId id : eager_.outputs(op)) {
        Storage& storage = storages[eager_.tensor(id).storage.value];
        need(unit, storage.writer);
        for (const size_t reader : storage.readers) need(unit, reader);
        storage = {.writer = unit, .readers = {}};
      }
    }
  }
  void need(size_t unit, size_t before) {
    if (before == kNone || before == unit) return;
    std::vector<size_t>& users = units_[before].users;
    if (std::find(users.begin(), users.end(), unit) != users.end()) return;
    users.push_back(unit);
    ++units_[unit].needs;
  }

  const Graph& eager_;
  std::vector<size_t> unit_of_;  // by op of the eager iteration
  std::vector<Unit> units_;
};

}  // namespace

std::optional<size_t> pass_of(const std::vector<CompiledRound>& rounds, size_t op) {
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r].round;
    if (op < round.first || op >= round.end) continue;
    const Place place = round.places[op - round.first];
    if (place != Place::outside) return 2 * r + (place == Place::backward ? 1 : 0);
  }
  return {};
}

std::optional<std::vector<Step>> in_order(const Graph& eager, std::vector<Step> steps,
                                          const std::vector<CompiledRound>& rounds) {
  const bool whole = std::none_of(rounds.begin(), rounds.end(), [&](const CompiledRound& round) {
    return &round != rounds.data() && round.round.first == (&round - 1)->round.first;
  });
  if (whole) return steps;
  std::vector<Step> sorted = StepSorter(eager, rounds, steps).sorted(steps);
  if (sorted.size() != steps.size()) return {};
  return sorted;
}

}  // namespace forerun::compile
