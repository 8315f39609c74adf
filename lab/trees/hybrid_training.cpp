#include "lab/trees/hybrid_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "lab/trees/boosting.h"

namespace forerun::hybrid {

bool can_train() { return can_boost(); }

namespace {

constexpr double kShortestUs = 0.3;
// Of measured to analytic time: what lies beyond is an accident.
constexpr double kLeast = 0.02;
constexpr double kMost = 1000;
constexpr double kOverlapping = 0.8;  // of the sum of kernels: clocks that disagree explain no more

// A row of one model's table.
struct Row {
  std::array<float, kColumns> columns = {};
  double analytic_us = 0;
  double us = 0;
  double span_us = 0;
  double kernels = 1;
  double steps = 1;
  bool alone = false;
  double weight = 1;
};

using Table = std::vector<Row>;

// How much an op counts: long ones decide the time of an iteration.
double weight_of(double us, bool alone) { return alone ? 1.0 : std::clamp(std::sqrt(us / 10), 0.5, 6.0); }

// Equal rows as one: the median of their times, and a weight that grows with the root of their number.
Table distinct(const Table& rows) {
  std::unordered_map<std::string, size_t> number;
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string key(reinterpret_cast<const char*>(rows[i].columns.data()), sizeof rows[i].columns);
    const auto [found, fresh] = number.emplace(std::move(key), groups.size());
    if (fresh) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  Table out;
  out.reserve(groups.size());
  for (std::vector<size_t>& group : groups) {
    std::sort(group.begin(), group.end(), [&](size_t a, size_t b) { return rows[a].us < rows[b].us; });
    Row row = rows[group[group.size() / 2]];
    const double times = std::min<double>(static_cast<double>(group.size()), 16);
    row.weight = weight_of(row.us, row.alone) * std::sqrt(times);
    out.push_back(row);
  }
  return out;
}

Result<Forest> grow(const Table& table, BoostingTarget target, const std::function<float(const Row&)>& label,
                    const std::function<double(const Row&)>& weight, int rounds, const GrowthOptions& options) {
  BoostingTable rows(kColumns);
  for (const Row& row : table) rows.add(row.columns, label(row), weight(row));
  return rows.grow({.target = target,
                    .rounds = rounds,
                    .depth = options.depth,
                    .rate = options.rate,
                    .least_weight = options.least_weight,
                    .leaf_step = kLeafStep,
                    .seed = static_cast<uint64_t>(options.seed)});
}

float time_label(const Row& row) {
  return static_cast<float>(std::clamp(std::max(row.us, kShortestUs) / row.analytic_us, kLeast, kMost));
}
float span_label(const Row& row) {
  return row.span_us > 0 ? static_cast<float>(std::log(std::min(row.span_us / row.us, 1.0))) : 0.0F;
}
float kernel_label(const Row& row) { return static_cast<float>(std::log2(std::max(row.kernels, 1.0) / row.steps)); }

double row_weight(const Row& row) { return row.weight; }

// Whether kernels of one op ran side by side: those of recurrent layers do, and of convolutions of many groups, and the
// first blocks of a kernel may run beside the last ones of the kernel before.
bool overlap(const Table& table) {
  return std::any_of(table.begin(), table.end(),
                     [](const Row& row) { return row.span_us > 0 && row.span_us < kOverlapping * row.us; });
}
// Of a recurrent layer's number of kernels: the host takes as long to launch it as there are kernels.
double launch_weight(const Row& row) { return std::clamp(std::sqrt(row.kernels / 20), 0.5, 8.0); }

class Trainer {
 public:
  Trainer(std::vector<MeasuredOp> ops, const GrowthOptions& options) : ops_(std::move(ops)), options_(options) {
    number_ops();
  }

  Result<ResidualModel> run(const WorkControl& control) {
    Work work(control, "forests", kModelCount + 2);
    std::array<Table, kModelCount> tables;
    for (const MeasuredOp& op : ops_) {
      if (op.feature_rows.size() == 1) add(tables, op.feature_rows[0], op.us, op.span_us, op.kernels, op.alone);
    }
    if (std::all_of(tables.begin(), tables.end(), [](const Table& table) { return table.empty(); })) {
      return Error{"there are no measured ops to learn from", "", "give files of run records or op samples"};
    }
    for (size_t model = 0; model < kModelCount; ++model) {
      if (const Status status = learn(model, tables[model]); !status.ok()) return status.error();
      if (const Status status = work.advance(); !status.ok()) return status.error();
    }
    share_whole_gradients(tables);
    for (const Model model : {Model::data_gradient, Model::weight_gradient}) {
      const Status status = learn(static_cast<size_t>(model), tables[static_cast<size_t>(model)]);
      if (!status.ok()) return status.error();
      if (const Status going = work.advance(); !going.ok()) return going.error();
    }
    return std::move(residual_model_);
  }

 private:
  void number_ops() {
    for (const MeasuredOp& op : ops_) {
      for (size_t i = 0; i < op.feature_rows.size(); ++i) {
        auto& known = residual_model_.models[static_cast<size_t>(op.feature_rows[i].model)];
        if (!known) known.emplace();
        known->ops.push_back(op.names[i]);
      }
    }
    for (auto& known : residual_model_.models) {
      if (!known) continue;
      std::sort(known->ops.begin(), known->ops.end());
      known->ops.erase(std::unique(known->ops.begin(), known->ops.end()), known->ops.end());
    }
    for (MeasuredOp& op : ops_) {
      for (size_t i = 0; i < op.feature_rows.size(); ++i) {
        FeatureRow& feature_row = op.feature_rows[i];
        feature_row.op = op.names[i];
        feature_row.columns[0] = static_cast<float>(
            residual_model_.models[static_cast<size_t>(feature_row.model)]->number_of(feature_row.op));
      }
    }
  }

  static void add(std::array<Table, kModelCount>& tables, const FeatureRow& feature_row, double us, double span_us,
                  double kernels, bool alone) {
    tables[static_cast<size_t>(feature_row.model)].push_back(
        {feature_row.columns, feature_row.analytic_us, us, span_us, kernels, feature_row.steps, alone});
  }

  Status learn(size_t model, const Table& rows) {
    if (rows.empty()) {
      residual_model_.models[model].reset();
      return {};
    }
    const Table table = distinct(rows);
    KernelModel& known = *residual_model_.models[model];
    const bool recurrent = model == static_cast<size_t>(Model::rnn);
    const int few_rounds = std::max(1, options_.rounds / 4);
    Result<Forest> time = grow(table, BoostingTarget::logarithm, time_label, row_weight, options_.rounds, options_);
    if (!time) return time.error();
    KernelForests forests;
    forests.time = std::move(*time);
    // Whether cuDNN launches kernels step by step or one for all is hard to tell: it takes more trees, as times do.
    Result<Forest> kernels = grow(table, BoostingTarget::label, kernel_label, recurrent ? launch_weight : row_weight,
                                  recurrent ? options_.rounds : few_rounds, options_);
    if (!kernels) return kernels.error();
    forests.kernels = std::move(*kernels);
    if (overlap(table)) {
      GrowthOptions small = options_;  // little is to be told of others
      small.depth = 5;
      small.rate = 0.2;
      Result<Forest> span =
          grow(table, BoostingTarget::label, span_label, row_weight,
               recurrent ? options_.rounds : std::max(1, few_rounds / 3), recurrent ? options_ : small);
      if (!span) return span.error();
      forests.span = std::move(*span);
    }
    known.forests = DeferredForests(std::move(forests));
    for (size_t column = 0; column < kColumns; ++column) {
      Range range{table[0].columns[column], table[0].columns[column]};
      for (const Row& row : table) {
        range.low = std::min(range.low, row.columns[column]);
        range.high = std::max(range.high, row.columns[column]);
      }
      known.seen[column] = range;
    }
    known.seen[kAlone].low = 0;  // what is asked, even where all were timed alone
    return {};
  }

  void share_whole_gradients(std::array<Table, kModelCount>& tables) {
    for (const MeasuredOp& op : ops_) {
      if (op.feature_rows.size() < 2) continue;
      std::vector<FeatureRowCost> costs;
      double us = 0;
      double kernels = 0;
      for (const FeatureRow& feature_row : op.feature_rows) {
        costs.push_back(residual_model_.cost(feature_row));
        us += costs.back().us;
        kernels += costs.back().kernels;
      }
      for (size_t i = 0; i < op.feature_rows.size(); ++i) {
        if (op.feature_rows[i].model == Model::reduction) continue;
        const double share = costs[i].us / us;
        add(tables, op.feature_rows[i], op.us * share, op.span_us * share, op.kernels * costs[i].kernels / kernels,
            op.alone);
      }
    }
  }

  std::vector<MeasuredOp> ops_;
  GrowthOptions options_;
  ResidualModel residual_model_;
};

}  // namespace

Result<ResidualModel> train(std::vector<MeasuredOp> ops, const GrowthOptions& options, const WorkControl& control) {
  return Trainer(std::move(ops), options).run(control);
}

}  // namespace forerun::hybrid
