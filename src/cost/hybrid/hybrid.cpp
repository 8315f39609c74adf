#include "cost/hybrid/hybrid.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/parallel.h"
#include "cost/analytic/analytic.h"
#include "cost/hybrid/lane_convolution.h"
#include "graph/op_kinds.h"

namespace forerun::hybrid {
namespace {

constexpr double kLongestUs = 9e9;
constexpr double kHeldShare = 0.5;   // of the L2
constexpr size_t kUsualKinds = 256;  // of rows, in the models that are asked about most

// A tenth of the range beyond what was seen is still around it.
bool within(std::span<const float> columns, const std::array<Range, kColumns>& seen) {
  for (size_t column = 1; column < kColumns; ++column) {
    const float slack = 0.1F * (seen[column].high - seen[column].low);
    const float value = columns[column];
    if (value < seen[column].low - slack || value > seen[column].high + slack) return false;
  }
  return true;
}

// Pieces that differ: the layers of a model repeat, and asking the trees takes most of the time.
class DistinctPieces {
 public:
  DistinctPieces() { pieces_.reserve(kUsualKinds); }

  // The number of the feature row, the same for equal ones.
  uint32_t number_of(const FeatureRow& feature_row) {
    key_.assign(reinterpret_cast<const char*>(feature_row.columns.data()), sizeof feature_row.columns);
    key_.push_back(static_cast<char>(feature_row.model));
    key_.push_back(feature_row.in_fp8 ? '8' : ' ');
    key_ += feature_row.op;
    const auto [found, fresh] = numbers_.try_emplace(key_, static_cast<uint32_t>(pieces_.size()));
    if (fresh) pieces_.push_back(feature_row);
    return found->second;
  }
  [[nodiscard]] std::span<const FeatureRow> feature_rows() const { return pieces_; }

 private:
  std::string key_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<FeatureRow> pieces_;
};

Bound bound_of(std::span<const RowTimes> rows, double us) {
  double compute = 0;
  double memory = 0;
  for (const RowTimes& row : rows) {
    compute += row.compute_us;
    memory += row.memory_us;
  }
  if (std::max(compute, memory) < 0.15 * us) return Bound::latency;
  return compute > memory ? Bound::compute : Bound::memory;
}

// The cost of a feature row on another GPU.
FeatureRowCost carried(const FeatureRowCost& cost, const CarriedRow& row, const DeviceScale& scale) {
  FeatureRowCost result = cost;
  result.us = carried_us(row, scale);
  result.overlapped_us = cost.us > 0 ? cost.overlapped_us * result.us / cost.us : 0;
  return result;
}

OpCost sum_of(std::span<const RowTimes> rows, std::span<const FeatureRowCost> parts) {
  OpCost total;
  if (rows.empty()) return total;
  double us = 0;
  double overlapped = 0;
  double kernels = 0;
  total.measured = true;
  for (const FeatureRowCost& cost : parts) {
    us += cost.us;
    overlapped += cost.overlapped_us;
    kernels += cost.kernels;
    total.measured = total.measured && cost.in_distribution;
  }
  total.gpu = Nanoseconds(static_cast<int64_t>(std::llround(std::min(us, kLongestUs) * 1e3)));
  total.overlapped = std::min(total.gpu, Nanoseconds(static_cast<int64_t>(overlapped * 1e3)));
  total.kernels = static_cast<int>(std::clamp(std::round(kernels), 1.0, 1e9));
  total.bound = bound_of(rows, us);
  return total;
}

}  // namespace

int KernelModel::number_of(std::string_view op) const {
  const auto found = std::lower_bound(ops.begin(), ops.end(), op);
  return found != ops.end() && *found == op ? static_cast<int>(found - ops.begin()) : -1;
}

std::vector<FeatureRowCost> ResidualModel::costs(std::span<const FeatureRow> feature_rows) const {
  std::vector<FeatureRowCost> costs(feature_rows.size());
  std::array<std::vector<float>, kModelCount> rows;
  std::array<std::vector<size_t>, kModelCount> places;  // of the rows among the feature rows
  for (size_t i = 0; i < feature_rows.size(); ++i) {
    const auto model = static_cast<size_t>(feature_rows[i].model);
    costs[i].us = feature_rows[i].analytic_us;
    costs[i].kernels = feature_rows[i].kernels;
    const int number = models[model] ? models[model]->number_of(feature_rows[i].op) : -1;
    if (number < 0) continue;
    rows[model].push_back(static_cast<float>(number));
    rows[model].insert(rows[model].end(), feature_rows[i].columns.begin() + 1, feature_rows[i].columns.end());
    places[model].push_back(i);
  }
  for (size_t model = 0; model < kModelCount; ++model) {
    if (places[model].empty()) continue;
    const KernelModel& known = *models[model];
    const std::vector<ForestAnswer> said = known.forests.ask(rows[model]);
    for (size_t r = 0; r < places[model].size(); ++r) {
      FeatureRowCost& cost = costs[places[model][r]];
      cost.us = cost.us * std::exp(static_cast<double>(said[r].time));
      const FeatureRow& row = feature_rows[places[model][r]];
      cost.kernels = row.launches > 0 ? row.launches : row.steps * std::exp2(static_cast<double>(said[r].kernels));
      cost.overlapped_us = cost.us * -std::expm1(std::min(static_cast<double>(said[r].span), 0.0));
      cost.in_distribution = !feature_rows[places[model][r]].in_fp8 &&
                             within(std::span(rows[model]).subspan(r * kColumns, kColumns), known.seen);
    }
  }
  return costs;
}

void ResidualModel::unpack_ahead(const std::function<bool()>& ops_are_known) const {
  for (const Model model : {Model::elementwise, Model::gemm, Model::normalization, Model::optimizer, Model::copy,
                            Model::reduction, Model::softmax, Model::attention, Model::embedding, Model::indexing}) {
    if (ops_are_known()) return;
    if (const auto& known = models[static_cast<size_t>(model)]) static_cast<void>(known->forests.get());
  }
}

CarriedRow carried_row(const MeasuredRow& measured, Model model, const RowTimes& there, Unit unit,
                       const OtherGpu& other, const Device& device) {
  CarriedRow row{.analytic_us = there.analytic_us,
                 .correction = correction_of(measured, model, unit, other.scale),
                 .kind = carried_as(model, unit, other.measured, device),
                 .memory_us = 0,
                 .reach_bound = is_reach_bound(device),
                 .streamed = streamed_row(model, measured, there.memory_us, other.measured, device, other.scale)};
  if (row.reach_bound) {
    // What the cache can hold of the operands of the op before need not be moved.
    const double held_us = kHeldShare * static_cast<double>(device.l2.value) / device.memory_bandwidth * 1e6;
    row.memory_us = std::max(0.0, there.memory_us - held_us);
  }
  return row;
}

CarriedRow carried_row(const MeasuredRow& measured, const FeatureRow& there, Unit unit, const OtherGpu& other,
                       const Device& device) {
  return carried_row(measured, there.model, {there.analytic_us, there.compute_us, there.memory_us}, unit, other,
                     device);
}

namespace {

// Of what tells rows of a model apart most often.
size_t hash_of(const RowWork& row, uint32_t asked) {
  size_t hash = std::hash<std::string_view>()(row.op);
  for (const double part : {static_cast<double>(asked), row.flops, row.moved}) {
    hash = hash * 1099511628211U ^ std::hash<double>()(part);
  }
  return hash;
}

}  // namespace

GraphCosts::GraphCosts(const Graph& graph, const Device& measured, const TrainingSetup& setup,
                       const AnalyticConstants& constants, const ResidualModel& residual_model)
    : precision_(setup.precision), constants_(&constants) {
  rows_.reserve(graph.op_count());
  behind_.reserve(graph.op_count());
  LayoutTracker layouts(graph, setup.channels_last);
  DistinctPieces distinct;
  kinds_.reserve(kUsualKinds);
  std::unordered_multimap<size_t, uint32_t> kinds;  // by hash
  std::vector<RowWork> works;
  OpKinds op_kinds(graph);
  std::vector<std::pair<uint32_t, uint32_t>> rows_of_kind;  // first and behind the last, of an op of that kind
  for (const Op& op : graph.ops()) {
    const OpKinds::Kind op_kind = op_kinds.of(op);
    if (!op_kind.first) {
      const auto [begin, end] = rows_of_kind[op_kind.number];
      for (uint32_t row = begin; row < end; ++row) rows_.push_back(rows_[row]);
      behind_.push_back(static_cast<uint32_t>(rows_.size()));
      continue;
    }
    const auto begin = static_cast<uint32_t>(rows_.size());
    works.clear();
    const auto feature_rows = featurize(graph, op, work_of(graph, op), layouts, measured, setup, constants, &works);
    for (size_t i = 0; i < feature_rows.size(); ++i) {
      const Kind kind{.work = works[i], .asked = distinct.number_of(feature_rows[i])};
      const size_t hash = hash_of(kind.work, kind.asked);
      auto [found, end] = kinds.equal_range(hash);
      while (found != end && !(kinds_[found->second] == kind)) ++found;
      if (found == end) {
        found = kinds.emplace(hash, static_cast<uint32_t>(kinds_.size()));
        kinds_.push_back(kind);
      }
      rows_.push_back(found->second);
    }
    layouts.pass(op);
    behind_.push_back(static_cast<uint32_t>(rows_.size()));
    rows_of_kind.emplace_back(begin, behind_.back());
  }
  known_ = residual_model.costs(distinct.feature_rows());
  const Device plain = without_cache(measured);
  for (Kind& kind : kinds_) {
    kind.on_measured = times_on(kind.work, measured, setup.precision, constants);
    kind.on_plain = times_on(kind.work, plain, setup.precision, constants);
  }
}

std::vector<OpCost> GraphCosts::summed(const std::vector<FeatureRowCost>& costs,
                                       const std::vector<RowTimes>& times) const {
  std::vector<OpCost> sums;
  sums.reserve(behind_.size());
  std::vector<FeatureRowCost> parts;
  std::vector<RowTimes> part_times;
  size_t first = 0;
  for (const uint32_t behind : behind_) {
    parts.clear();
    part_times.clear();
    for (; first < behind; ++first) {
      parts.push_back(costs[rows_[first]]);
      part_times.push_back(times[rows_[first]]);
    }
    sums.push_back(sum_of(part_times, parts));
  }
  return sums;
}

std::vector<OpCost> GraphCosts::on_measured() const {
  std::vector<FeatureRowCost> costs;
  std::vector<RowTimes> times;
  for (const Kind& kind : kinds_) {
    costs.push_back(known_[kind.asked]);
    times.push_back(kind.on_measured);
  }
  return summed(costs, times);
}

std::vector<OpCost> GraphCosts::on(const Device& device, const OtherGpu& other) const {
  const Device there = without_cache(other.scale.sustaining(device));
  std::vector<FeatureRowCost> costs;
  std::vector<RowTimes> times;
  for (const Kind& kind : kinds_) {
    const FeatureRowCost& cost = known_[kind.asked];
    times.push_back(times_on(kind.work, there, precision_, *constants_));
    if (const auto us = lane_convolution_us(kind.work, other.measured, there, other.scale)) {
      times.back().analytic_us = *us;
    }
    const MeasuredRow measured{.us = cost.us,
                               .analytic_us = kind.on_plain.analytic_us,
                               .compute_us = kind.on_plain.compute_us,
                               .memory_us = kind.on_plain.memory_us,
                               .kernels = cost.kernels};
    costs.push_back(carried(cost, carried_row(measured, kind.work.model, times.back(), kind.work.unit, other, device),
                            other.scale));
  }
  return summed(costs, times);
}

std::vector<OpCost> hybrid_costs(const Graph& graph, const Device& device, const TrainingSetup& setup,
                                 const AnalyticConstants& constants, const ResidualModel& residual_model,
                                 const std::optional<OtherGpu>& other) {
  const GraphCosts costs(graph, other ? other->measured : device, setup, constants, residual_model);
  return other ? costs.on(device, *other) : costs.on_measured();
}

}  // namespace forerun::hybrid
