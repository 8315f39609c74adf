#include "cluster/linear_program.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "base/check.h"
#include "cluster/clp.h"

namespace forerun::cluster {
namespace {

constexpr double kGrid = 1 << 20;

constexpr double kTolerance = 1e-9;
constexpr double kNoPrice = 1e-7;  // dual values below count as 0

// The order in which things are handed over: as they are, or shuffled by a generator that is the same everywhere.
std::vector<int> handed_over(size_t count, uint64_t shuffle) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (shuffle == 0) return order;
  std::mt19937_64 random(shuffle);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// The bound that a value is at, or next to.
double bound_near(double value, double lower, double upper) {
  return std::abs(value - lower) <= std::abs(upper - value) ? lower : upper;
}

// A problem in the solver, by column.
class Solver {
 public:
  explicit Solver(const Clp& clp) : clp_(clp), model_(clp.new_model()) {}
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  ~Solver() { clp_.delete_model(model_); }

  struct Bounds {
    std::vector<double> lower, upper;
  };
  void load(const std::vector<std::vector<std::pair<int, double>>>& columns, const Bounds& variables,
            const std::vector<double>& objective, const Bounds& rows) {
    columns_ = columns.size();
    rows_ = rows.lower.size();
    std::vector<int> starts = {0};
    std::vector<int> indices;
    std::vector<double> values;
    for (const auto& column : columns) {
      for (const auto& [row, factor] : column) {
        indices.push_back(row);
        values.push_back(factor);
      }
      starts.push_back(static_cast<int>(indices.size()));
    }
    clp_.set_log_level(model_, 0);
    clp_.load_problem(model_, static_cast<int>(columns_), static_cast<int>(rows_), starts.data(), indices.data(),
                      values.data(), variables.lower.data(), variables.upper.data(), objective.data(),
                      rows.lower.data(), rows.upper.data());
    clp_.set_optimization_direction(model_, -1);  // the largest
    clp_.set_primal_tolerance(model_, kTolerance);
    clp_.set_dual_tolerance(model_, kTolerance);
  }
  // Both tell whether there is an optimum.
  bool solve() {
    clp_.initial_solve(model_);
    return clp_.is_proven_optimal(model_) != 0;
  }
  bool solve_for(const std::vector<double>& objective) {
    clp_.change_obj_coefficients(model_, objective.data());
    clp_.primal(model_, 0);
    return clp_.is_proven_optimal(model_) != 0;
  }
  [[nodiscard]] std::vector<double> values() const { return copied(clp_.primal_column_solution(model_), columns_); }

  // Leaves the optima of the present objective, and no other points.
  void keep_optima() {
    Bounds variables = {copied(clp_.column_lower(model_), columns_), copied(clp_.column_upper(model_), columns_)};
    Bounds rows = {copied(clp_.row_lower(model_), rows_), copied(clp_.row_upper(model_), rows_)};
    fix(variables, values(), copied(clp_.dual_column_solution(model_), columns_));
    fix(rows, copied(clp_.primal_row_solution(model_), rows_), copied(clp_.dual_row_solution(model_), rows_));
    clp_.change_column_lower(model_, variables.lower.data());
    clp_.change_column_upper(model_, variables.upper.data());
    clp_.change_row_lower(model_, rows.lower.data());
    clp_.change_row_upper(model_, rows.upper.data());
  }

 private:
  static std::vector<double> copied(const double* values, size_t count) {
    return values == nullptr ? std::vector<double>(count) : std::vector<double>(values, values + count);
  }
  // What has a price stays at the bound where it is.
  static void fix(Bounds& bounds, const std::vector<double>& values, const std::vector<double>& prices) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::abs(prices[i]) <= kNoPrice) continue;
      bounds.lower[i] = bounds.upper[i] = bound_near(values[i], bounds.lower[i], bounds.upper[i]);
    }
  }

  const Clp& clp_;
  ClpModel* model_;
  size_t columns_ = 0, rows_ = 0;
};

uint64_t scrambled(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

double steady(double value) { return std::round(value * kGrid) / kGrid; }

double tie_weight(size_t place, size_t places) {
  const double own = static_cast<double>(scrambled(place) >> 11) * 0x1p-53;  // in [0, 1)
  return 1 - (static_cast<double>(place) + 0.25 * own) / (2 * static_cast<double>(std::max<size_t>(places, 1)));
}

int LinearProgram::add_variable(double objective, double lower, double upper) {
  objective_.push_back(objective);
  lower_.push_back(lower);
  upper_.push_back(upper);
  return static_cast<int>(objective_.size()) - 1;
}

void LinearProgram::add_row(double lower, double upper, Terms terms) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  rows_.push_back(std::move(terms));
}

bool has_solver() { return clp() != nullptr; }

std::optional<std::vector<double>> LinearProgram::maximize(uint64_t shuffle) const {
  CHECK(has_solver(), "a linear program without a solver: parse_policy() refuses policies that have one");
  const std::vector<int> columns = handed_over(variables(), shuffle);  // by variable: its column
  const std::vector<int> lines = handed_over(rows_.size(), shuffle);
  std::vector<std::vector<std::pair<int, double>>> factors(variables());
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (const auto& [variable, factor] : rows_[row]) {
      CHECK(variable >= 0 && static_cast<size_t>(variable) < variables(), "a row names a variable that is not there");
      factors[static_cast<size_t>(columns[static_cast<size_t>(variable)])].emplace_back(lines[row], factor);
    }
  }
  const auto placed = [](const std::vector<double>& values, const std::vector<int>& places) {
    std::vector<double> result(places.size(), 0.0);
    for (size_t i = 0; i < values.size(); ++i) result[static_cast<size_t>(places[i])] = values[i];
    return result;
  };
  Solver solver(*clp());
  solver.load(factors, {placed(lower_, columns), placed(upper_, columns)}, placed(objective_, columns),
              {placed(row_lower_, lines), placed(row_upper_, lines)});
  if (!solver.solve()) return std::nullopt;
  std::vector<double> values = solver.values();
  for (const std::vector<double>& objective : further_) {
    solver.keep_optima();
    if (!solver.solve_for(placed(objective, columns))) break;  // an optimum of those before it is an answer too
    values = solver.values();
  }
  std::vector<double> by_variable(variables());
  for (size_t i = 0; i < variables(); ++i) by_variable[i] = values[static_cast<size_t>(columns[i])];
  return by_variable;
}

}  // namespace forerun::cluster
