#include "cluster/linear_program.h"

#include <algorithm>
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
  const bool any_whole = std::find(whole_.begin(), whole_.end(), true) != whole_.end();
  if (!any_whole) return std::vector<double>(solver.getColSolution(), solver.getColSolution() + variables());
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
