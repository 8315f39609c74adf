#include "api/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/options_text.h"
#include "base/parallel.h"

namespace forerun {
namespace {

constexpr double kMostPrice = 1e6;
constexpr double kSecondsAnHour = 3600;

Result<std::vector<Device>> compared_devices(const CompareRequest& request, const DeviceCatalogue& devices) {
  if (request.gpus.empty()) return devices.devices();
  std::vector<Device> found;
  for (const std::string& name : request.gpus) {
    Result<Device> device = devices.find(name);
    if (!device) return device.error();
    const auto same = [&](const Device& other) { return other.name == device->name; };
    if (std::any_of(found.begin(), found.end(), same)) {
      return Error{fmt::format("{} is named twice", device->name), "--gpus", "name each GPU once"};
    }
    found.push_back(std::move(*device));
  }
  return found;
}

Status check_prices(const std::vector<GpuPrice>& prices, const std::vector<Device>& devices) {
  for (const GpuPrice& price : prices) {
    const auto same = [&](const Device& device) { return device.name == price.gpu; };
    if (std::any_of(devices.begin(), devices.end(), same)) continue;
    return Error{fmt::format("{} has a price and is not compared", price.gpu), "--price", "name it in --gpus too"};
  }
  return {};
}

// What a GPU's price makes of its prediction.
void add_costs(const CompareRequest& request, CompareRow& row) {
  for (const GpuPrice& price : request.prices) {
    if (price.gpu == row.gpu) row.price = price.per_hour;
  }
  if (!row.prediction) return;
  const Prediction& p = *row.prediction;
  if (row.price && p.samples_per_second > 0) {
    row.cost_million_samples = *row.price * 1e6 / p.samples_per_second / kSecondsAnHour;
  }
  if (request.iterations <= 0) return;
  row.run_hours = static_cast<double>(request.iterations) * milliseconds(p.times.iteration) / 1e3 / kSecondsAnHour;
  if (row.price) row.run_cost = *row.price * *row.run_hours;
}

// How rows are put in order: the smaller first.
auto order_of(const CompareRow& row) {
  const int group = row.prediction ? static_cast<int>(row.prediction->memory_answer.verdict) : 3;
  const Nanoseconds none;
  const Nanoseconds iteration = row.prediction ? row.prediction->times.iteration : none;
  // Where the host bounds them, GPUs are alike; the one that has less to do goes first.
  return std::tuple(group, iteration.value, row.prediction ? row.prediction->times.gpu_busy.value : 0, row.gpu);
}

bool surely_fits(const CompareRow& row) {
  return row.prediction && row.prediction->memory_answer.verdict == FitVerdict::fits;
}

}  // namespace

Result<std::vector<GpuPrice>> parse_prices(const std::vector<std::string>& texts, const DeviceCatalogue& devices) {
  const OptionGrammar grammar{"--price", "write GPU=PRICE an hour, for instance h100=2.5"};
  std::vector<GpuPrice> prices;
  for (const std::string& text : texts) {
    const auto pairs = parse_key_values(text, grammar);
    if (!pairs) return pairs.error();
    for (const auto& [name, value] : *pairs) {
      const auto device = devices.find(name);
      if (!device) return device.error().within("--price");
      const auto number = number_in(value);
      if (!number || *number < 0 || *number > kMostPrice) {
        return Error{fmt::format("the price of {} cannot be '{}'", name, value), "--price",
                     fmt::format("give a number from 0 to {:.0f}", kMostPrice)};
      }
      const auto same = [&](const GpuPrice& other) { return other.gpu == device->name; };
      if (std::any_of(prices.begin(), prices.end(), same)) {
        return Error{fmt::format("{} has two prices", device->name), "--price", "give each GPU one"};
      }
      prices.push_back({device->name, *number});
    }
  }
  return prices;
}

const CompareRow* CompareAnswer::fastest() const {
  return !rows.empty() && surely_fits(rows.front()) ? &rows.front() : nullptr;
}

const CompareRow* CompareAnswer::cheapest() const {
  const CompareRow* best = nullptr;
  for (const CompareRow& row : rows) {
    if (!surely_fits(row) || !row.cost_million_samples) continue;
    if (best == nullptr || *row.cost_million_samples < *best->cost_million_samples) best = &row;
  }
  return best;
}

Result<CompareAnswer> compare_gpus(const CompareRequest& request, const CostModels& cost_models,
                                   const WorkControl& control) {
  if (request.iterations < 0) return Error{"a run has no negative iterations", "--iterations", "give 1 or more"};
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  const auto devices = compared_devices(request, cost_models.devices);
  if (!devices) return devices.error();
  if (const Status status = check_prices(request.prices, *devices); !status.ok()) return status.error();
  if (const auto model = forward_model(request.model); !model) return model.error();
  CompareAnswer answer{.model = request.model.model, .iterations = request.iterations, .rows = {}};
  for (const Device& device : *devices) {
    answer.rows.push_back({.gpu = device.name, .prediction = Error{"was not predicted", "", ""}});
  }
  Work work(control, "GPUs", static_cast<int64_t>(devices->size()));
  const Status status = parallel_for(devices->size(), request.threads, work, [&](size_t i) {
    const Device& device = (*devices)[i];
    const Result<TrainingRun> run = build_run(request.model, device);
    answer.rows[i].prediction = run ? Result<Prediction>(predict(*run, device, cost_models, request.memory, 1))
                                    : Result<Prediction>(run.error());
  });
  if (!status.ok()) return status.error();
  for (CompareRow& row : answer.rows) add_costs(request, row);
  std::sort(answer.rows.begin(), answer.rows.end(),
            [](const CompareRow& a, const CompareRow& b) { return order_of(a) < order_of(b); });
  const CompareRow* best = answer.fastest();
  const double most = best != nullptr ? best->prediction->samples_per_second : 0;
  for (CompareRow& row : answer.rows) {
    if (row.prediction && most > 0) row.speed = row.prediction->samples_per_second / most;
  }
  return answer;
}

}  // namespace forerun
