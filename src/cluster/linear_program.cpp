#include "cluster/linear_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/check.h"

#if FORERUN_HAS_CLP
#include <coin/CoinPackedMatrix.hpp>
#include <coin/OsiClpSolverInterface.hpp>
#endif

namespace forerun::cluster {
namespace {

constexpr double kGrid = 1 << 20;

#if FORERUN_HAS_CLP
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

// Leaves the optima of the present objective, and no other points.
void keep_optima(OsiClpSolverInterface& solver) {
  const double* costs = solver.getReducedCost();
  const double* prices = solver.getRowPrice();
  const std::vector<double> lower(solver.getColLower(), solver.getColLower() + solver.getNumCols());
  const std::vector<double> upper(solver.getColUpper(), solver.getColUpper() + solver.getNumCols());
  const std::vector<double> row_lower(solver.getRowLower(), solver.getRowLower() + solver.getNumRows());
  const std::vector<double> row_upper(solver.getRowUpper(), solver.getRowUpper() + solver.getNumRows());
  const std::vector<double> values(solver.getColSolution(), solver.getColSolution() + solver.getNumCols());
  const std::vector<double> sums(solver.getRowActivity(), solver.getRowActivity() + solver.getNumRows());
  const std::vector<double> cost(costs, costs + solver.getNumCols());
  const std::vector<double> price(prices, prices + solver.getNumRows());
  for (int i = 0; i < solver.getNumCols(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (std::abs(cost[at]) <= kNoPrice) continue;
    const double bound = bound_near(values[at], lower[at], upper[at]);
    solver.setColBounds(i, bound, bound);
  }
  for (int i = 0; i < solver.getNumRows(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (std::abs(price[at]) <= kNoPrice) continue;
    const double bound = bound_near(sums[at], row_lower[at], row_upper[at]);
    solver.setRowBounds(i, bound, bound);
  }
}

#endif

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

#if FORERUN_HAS_CLP

bool has_solver() { return true; }

std::optional<std::vector<double>> LinearProgram::maximize(uint64_t shuffle) const {
  const std::vector<int> columns = handed_over(variables(), shuffle);  // by variable: its column
  const std::vector<int> lines = handed_over(rows_.size(), shuffle);
  std::vector<int> row_of, column_of;
  std::vector<double> factors;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (const auto& [variable, factor] : rows_[row]) {
      CHECK(variable >= 0 && static_cast<size_t>(variable) < variables(), "a row names a variable that is not there");
      row_of.push_back(lines[row]);
      column_of.push_back(columns[static_cast<size_t>(variable)]);
      factors.push_back(factor);
    }
  }
  CoinPackedMatrix matrix(true, row_of.data(), column_of.data(), factors.data(),
                          static_cast<CoinBigIndex>(factors.size()));
  matrix.setDimensions(static_cast<int>(rows_.size()), static_cast<int>(variables()));
  const auto placed = [](const std::vector<double>& values, const std::vector<int>& places) {
    std::vector<double> result(places.size(), 0.0);
    for (size_t i = 0; i < values.size(); ++i) result[static_cast<size_t>(places[i])] = values[i];
    return result;
  };
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.loadProblem(matrix, placed(lower_, columns).data(), placed(upper_, columns).data(),
                     placed(objective_, columns).data(), placed(row_lower_, lines).data(),
                     placed(row_upper_, lines).data());
  solver.setObjSense(-1);
  solver.setDblParam(OsiPrimalTolerance, kTolerance);
  solver.setDblParam(OsiDualTolerance, kTolerance);
  solver.initialSolve();
  if (!solver.isProvenOptimal()) return std::nullopt;
  std::vector<double> values(solver.getColSolution(), solver.getColSolution() + variables());
  for (const std::vector<double>& objective : further_) {
    keep_optima(solver);
    solver.setObjective(placed(objective, columns).data());
    solver.resolve();
    if (!solver.isProvenOptimal()) break;  // an optimum of those before it is an answer too
    values.assign(solver.getColSolution(), solver.getColSolution() + variables());
  }
  std::vector<double> by_variable(variables());
  for (size_t i = 0; i < variables(); ++i) by_variable[i] = values[static_cast<size_t>(columns[i])];
  return by_variable;
}

#else

bool has_solver() { return false; }

std::optional<std::vector<double>> LinearProgram::maximize(uint64_t /*shuffle*/) const {
  CHECK(false, "a linear program in a build without a solver: parse_policy() refuses policies that have one");
  return std::nullopt;
}

#endif

}  // namespace forerun::cluster
