#include "cluster/linear_program.h"

#include <cmath>
#include <coin/CbcModel.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <coin/OsiClpSolverInterface.hpp>

#include "base/check.h"

namespace forerun::cluster {

int LinearProgram::add_variable(double objective, double lower, double upper, bool whole) {
  objective_.push_back(objective);
  lower_.push_back(lower);
  upper_.push_back(upper);
  whole_.push_back(whole);
  return static_cast<int>(objective_.size()) - 1;
}

void LinearProgram::add_row(double lower, double upper, Terms terms) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  rows_.push_back(std::move(terms));
}

bool LinearProgram::is_whole(const std::vector<double>& values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (whole_[i] && std::abs(values[i] - std::round(values[i])) > 1e-7) return false;
  }
  return true;
}

std::optional<std::vector<double>> LinearProgram::maximize(int most_nodes) const {
  std::vector<int> row_of, variable_of;
  std::vector<double> factors;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (const auto& [variable, factor] : rows_[row]) {
      CHECK(variable >= 0 && static_cast<size_t>(variable) < variables(), "a row names a variable that is not there");
      row_of.push_back(static_cast<int>(row));
      variable_of.push_back(variable);
      factors.push_back(factor);
    }
  }
  CoinPackedMatrix matrix(true, row_of.data(), variable_of.data(), factors.data(),
                          static_cast<CoinBigIndex>(factors.size()));
  matrix.setDimensions(static_cast<int>(rows_.size()), static_cast<int>(variables()));
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.loadProblem(matrix, lower_.data(), upper_.data(), objective_.data(), row_lower_.data(), row_upper_.data());
  solver.setObjSense(-1);
  for (size_t i = 0; i < variables(); ++i) {
    if (whole_[i]) solver.setInteger(static_cast<int>(i));
  }
  solver.initialSolve();
  if (!solver.isProvenOptimal()) return std::nullopt;
  const std::vector<double> relaxed(solver.getColSolution(), solver.getColSolution() + variables());
  if (is_whole(relaxed)) return relaxed;  // often, where most things weigh the same
  CbcModel model(solver);
  model.messageHandler()->setLogLevel(0);
  model.setLogLevel(0);
  model.setMaximumNodes(most_nodes);
  model.branchAndBound();
  const double* best = model.bestSolution();
  if (best == nullptr) return std::nullopt;
  return std::vector<double>(best, best + variables());
}

}  // namespace forerun::cluster
