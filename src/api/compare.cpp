#include "api/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "api/batch_room.h"
#include "base/options_text.h"
#include "base/parallel.h"
#include "predict/across_devices.h"
#include "predict/compiled.h"

namespace forerun {
namespace {

constexpr double kSecondsAnHour = 3600;
constexpr double kEndless = std::numeric_limits<double>::infinity();

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

Status check_prices(const CompareRequest& request, const std::vector<Device>& devices) {
  for (const GpuPrice& price : request.given) {
    const auto same = [&](const Device& device) { return device.name == price.gpu; };
    if (std::any_of(devices.begin(), devices.end(), same)) continue;
    return Error{fmt::format("{} has a price and is not compared", price.gpu), "--price", "name it in --gpus too"};
  }
  if (request.prices.any()) {
    const auto priced = [&](const Device& device) { return request.prices.of(device.name).has_value(); };
    if (std::any_of(devices.begin(), devices.end(), priced)) return {};
    return Error{"none of the GPUs that are compared has a price", "--price, --prices", "add prices of theirs"};
  }
  if (request.by == CompareBy::cost) return Error{"costs follow from prices", "--by cost", "give --prices or --price"};
  if (request.budget) return Error{"a budget is spent by prices", "--budget", "give --prices or --price"};
  return {};
}

Status check_limits(const CompareRequest& request) {
  if (Status status = check_job_length(request.job); !status.ok()) return status;
  const auto odd = [](const std::optional<double>& limit) { return limit && !(*limit > 0 && *limit < 1e12); };
  if (odd(request.deadline_hours)) return Error{"the deadline is no time", "--deadline", "write 12h, 90min or 3d"};
  if (odd(request.budget)) return Error{"the budget is no amount above 0", "--budget", "write it as 200"};
  if ((request.deadline_hours || request.budget) && !request.job.any()) {
    return Error{"deadline and budget are of a whole run", "--deadline, --budget",
                 "tell its length: --samples, --tokens, --iterations, or --epochs with --dataset-size"};
  }
  return {};
}

// What a GPU's price and the run's length make of its prediction.
Status add_costs(const CompareRequest& request, const Device& device, CompareRow& row) {
  row.price = request.prices.of(row.gpu);
  if (!row.prediction) return {};
  Prediction& p = *row.prediction;
  if (row.price && p.samples_per_second > 0) {
    row.cost_million_samples = *row.price * 1e6 / p.samples_per_second / kSecondsAnHour;
  }
  if (Status status = set_job(request.job, device, row.price, p); !status.ok()) return status;
  if (!p.job) return {};
  row.run_hours = p.job->hours;
  if (p.job->energy) row.run_energy = p.job->energy->expected;
  if (const auto cost = p.job->cost(); cost) row.run_cost = cost->expected;
  row.in_time = !request.deadline_hours || *row.run_hours <= *request.deadline_hours;
  row.in_budget = !request.budget || row.run_cost.value_or(kEndless) <= *request.budget;
  return {};
}

// How rows are put in order: the smaller first.
auto order_of(const CompareRow& row, CompareBy by) {
  const int group = row.prediction ? static_cast<int>(row.prediction->memory_answer.verdict) : 3;
  const double cost = by == CompareBy::cost ? row.cost_million_samples.value_or(kEndless) : 0;
  const int64_t iteration = row.prediction ? row.prediction->times.iteration.value : 0;
  // Where the host bounds them, GPUs are alike; the one that has less to do goes first.
  const int64_t busy = row.prediction ? row.prediction->times.gpu_busy.value : 0;
  return std::tuple(group, row.meets_limits() ? 0 : 1, cost, iteration, busy, row.gpu);
}

bool surely_good(const CompareRow& row) { return row.surely_fits() && row.meets_limits(); }

// Marks those that no other is better than, in time and cost of a sample.
void mark_pareto(std::vector<CompareRow>& rows) {
  const auto is_candidate = [](const CompareRow& row) { return row.surely_fits() && row.cost_million_samples; };
  for (CompareRow& row : rows) {
    if (!is_candidate(row)) continue;
    row.pareto = std::none_of(rows.begin(), rows.end(), [&](const CompareRow& other) {
      if (!is_candidate(other)) return false;
      const Nanoseconds there = other.prediction->times.iteration, here = row.prediction->times.iteration;
      const double cheaper = *other.cost_million_samples, cost = *row.cost_million_samples;
      return there <= here && cheaper <= cost && (there < here || cheaper < cost);
    });
  }
}

void add_speeds(CompareAnswer& answer) {
  double most = 0;
  for (const CompareRow& row : answer.rows) {
    if (row.surely_fits()) most = std::max(most, row.prediction->samples_per_second);
  }
  for (CompareRow& row : answer.rows) {
    if (row.prediction && most > 0) row.speed = row.prediction->samples_per_second / most;
  }
}

CompareAnswer empty_comparison(const CompareRequest& request) {
  return {.model = request.model.model,
          .currency = request.prices.currency,
          .by = request.by,
          .deadline_hours = request.deadline_hours,
          .budget = request.budget};
}

// The predictions of all devices, and beside them, where it is asked for, the batches that they have room for.
Status predict_rows(const CompareRequest& request, const ModelSource& source, const std::vector<Device>& devices,
                    const CostModels& cost_models, const WorkControl& control, CompareAnswer& answer) {
  Work work(control, "GPUs", static_cast<int64_t>(devices.size()));
  Result<std::vector<Result<Prediction>>> predictions = Error{"was not predicted", "", ""};
  std::vector<std::optional<int64_t>> batches(devices.size());
  parallel_for(2, request.threads, [&](size_t part) {
    if (part == 0) {
      predictions =
          predict_across([&](const Device& device) { return source.on(device); }, source.precision(),
                         request.model.setup.compile, devices, cost_models, request.memory, request.threads, work);
    } else if (request.largest_batch) {
      batches = batches_with_room(request.model, source.precision(), devices, cost_models, request.memory);
    }
  });
  if (!predictions) return predictions.error();
  for (size_t i = 0; i < devices.size(); ++i) {
    const Device& device = devices[i];
    answer.rows.push_back({.gpu = device.name,
                           .short_name = device.aliases.empty() ? device.name : device.aliases.front(),
                           .measured = device.measured,
                           .prediction = std::move((*predictions)[i]),
                           .largest_batch = batches[i]});
    if (Status status = add_costs(request, device, answer.rows.back()); !status.ok()) return status;
    const CompareRow& row = answer.rows.back();
    if (row.prediction && row.prediction->job) answer.iterations = row.prediction->job->iterations;
  }
  return {};
}

}  // namespace

const CompareRow* CompareAnswer::fastest() const {
  const CompareRow* best = nullptr;
  for (const CompareRow& row : rows) {
    if (!surely_good(row)) continue;
    if (best == nullptr || row.prediction->times.iteration < best->prediction->times.iteration) best = &row;
  }
  return best;
}

const CompareRow* CompareAnswer::cheapest() const {
  const CompareRow* best = nullptr;
  for (const CompareRow& row : rows) {
    if (!surely_good(row) || !row.cost_million_samples) continue;
    if (best == nullptr || *row.cost_million_samples < *best->cost_million_samples) best = &row;
  }
  return best;
}

const Error* CompareAnswer::same_error() const {
  const Error* first = nullptr;
  for (const CompareRow& row : rows) {
    if (row.prediction.ok()) return nullptr;
    if (first == nullptr) first = &row.prediction.error();
    if (row.prediction.error().message() != first->message()) return nullptr;
  }
  return first;
}

Result<double> parse_deadline(const std::string& text) {
  struct TimeUnit {
    std::string_view name;
    double hours;
  };
  constexpr TimeUnit kUnits[] = {{"days", 24},      {"day", 24},     {"d", 24},         {"hours", 1}, {"h", 1},
                                 {"min", 1 / 60.0}, {"m", 1 / 60.0}, {"s", 1 / 3600.0}, {"", 1}};
  for (const TimeUnit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = number_in(text.substr(0, text.size() - unit.name.size()));
    if (number && *number > 0) return *number * unit.hours;
    break;
  }
  return Error{fmt::format("'{}' is no time", text), "--deadline", "write 12h, 90min or 3d"};
}

Result<CompareAnswer> compare_gpus(const CompareRequest& request, const CostModels& cost_models,
                                   const WorkControl& control) {
  if (const Status status = check_limits(request); !status.ok()) return status.error();
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  if (const Status status = check_compiled(request.model.setup, request.memory); !status.ok()) return status.error();
  const auto devices = compared_devices(request, cost_models.devices);
  if (!devices) return devices.error();
  if (const Status status = check_prices(request, *devices); !status.ok()) return status.error();
  const auto source = ModelSource::read(request.model);
  if (!source) return source.error();
  CompareAnswer answer = empty_comparison(request);
  if (const Status status = predict_rows(request, *source, *devices, cost_models, control, answer); !status.ok()) {
    return status.error();
  }
  mark_pareto(answer.rows);
  std::sort(answer.rows.begin(), answer.rows.end(), [&](const CompareRow& a, const CompareRow& b) {
    return order_of(a, request.by) < order_of(b, request.by);
  });
  add_speeds(answer);
  return answer;
}

}  // namespace forerun
