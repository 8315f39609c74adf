#include "lab/training_data/driple_simulated.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <tuple>

namespace forerun {
namespace {

constexpr int64_t kTriesForEach = 20;

using Random = std::mt19937_64;

template <class T>
const T& random_one(const std::vector<T>& list, Random& random) {
  return list[random() % list.size()];
}

int64_t scaled_number(int64_t value, double factor, int64_t multiple) {
  const double wanted = static_cast<double>(value) * factor / static_cast<double>(multiple);
  return std::max<int64_t>(1, std::llround(wanted)) * multiple;
}

// One argument of the family larger or smaller: widths stay multiples of 8, numbers of layers change by one or so.
std::string varied_arguments(const std::string& arguments, Random& random) {
  nlohmann::json json = nlohmann::json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty() || random() % 4 == 0) return arguments;
  auto entry = json.begin();
  std::advance(entry, static_cast<int64_t>(random() % json.size()));
  const double factor = random_one<double>({0.5, 0.75, 1.25, 1.5, 2}, random);
  nlohmann::json& value = entry.value();
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    value = scaled_number(number, factor, number % 8 == 0 ? 8 : 1);
  } else if (value.is_number_float() && entry.key() != "dropout") {
    value = value.get<double>() * factor;
  } else if (value.is_array()) {
    for (nlohmann::json& item : value) {
      if (item.is_number_integer()) item = scaled_number(item.get<int64_t>(), factor, 1);
    }
  }
  return json.dump();
}

OptimizerSpec any_optimizer(Random& random) {
  const auto [kind, momentum] = random_one<std::pair<OptimizerKind, double>>({{OptimizerKind::sgd, 0.0},
                                                                              {OptimizerKind::sgd, 0.9},
                                                                              {OptimizerKind::adam, 0.0},
                                                                              {OptimizerKind::adamw, 0.0},
                                                                              {OptimizerKind::rmsprop, 0.0}},
                                                                             random);
  return {.kind = kind, .momentum = momentum};
}

void vary(ResourceRecord& record, Random& random) {
  TrainingRun& run = record.described.run;
  run.arguments = varied_arguments(run.arguments, random);
  if (run.input.kind == InputKind::tokens) {
    run.input.size = std::clamp<int64_t>(static_cast<int64_t>(std::llround(static_cast<double>(run.input.size) *
                                                                           random_one<double>({0.5, 1, 1, 2}, random))),
                                         8, 512);
  } else if (run.input.kind != InputKind::flat) {
    run.input.size = random_one<int64_t>({run.input.size, 96, 128, 160, 192, 224}, random);
  }
  const double more = random_one<double>({0.25, 0.5, 0.5, 1, 1, 1.5, 2, 2, 4}, random);
  run.input.batch = std::clamp<int64_t>(scaled_number(run.input.batch, more, 1), 4, 512);
  run.setup.optimizer = any_optimizer(random);
}

struct SimulatedSetting {
  std::string setting, tcp, mode;
  int64_t servers = 0, workers = 1;
  double bits_per_second = 0;
  auto operator<=>(const SimulatedSetting&) const = default;
};

}  // namespace

int64_t add_simulated_workloads(const std::vector<ResourceRecord>& patterns, int64_t count, uint64_t seed,
                                DripleWorkloadBuilder& builder) {
  std::vector<const ResourceRecord*> usable;
  std::set<SimulatedSetting> settings;
  for (const ResourceRecord& record : patterns) {
    settings.insert({record.setting, record.tcp, record.mode, record.servers, record.workers, record.bits_per_second});
    if (builder.trains_on(record.described.run.family)) usable.push_back(&record);
  }
  if (usable.empty() || settings.empty()) return 0;
  Random random(seed);
  int64_t made = 0;
  for (int64_t tries = 0; made < count && tries < kTriesForEach * count; ++tries) {
    ResourceRecord record = *random_one(usable, random);
    vary(record, random);
    record.id = "simulated-" + std::to_string(made);
    record.links = LinksSeen::one;
    for (const SimulatedSetting& setting : settings) {
      if (made >= count) break;
      std::tie(record.setting, record.tcp, record.mode) = std::tie(setting.setting, setting.tcp, setting.mode);
      record.servers = setting.servers;
      record.workers = setting.workers;
      record.bits_per_second = setting.bits_per_second;
      if (!builder.add_simulated(record).ok()) break;
      ++made;
    }
  }
  return made;
}

}  // namespace forerun
