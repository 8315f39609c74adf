#include "cluster/clp.h"

#include <dlfcn.h>

#include <optional>

namespace forerun::cluster {
namespace {

std::optional<Clp> loaded() {
  void* const library = dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);  // stays until the program ends
  if (library == nullptr) return std::nullopt;
  Clp clp;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, name);
    all = all && symbol != nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(clp.new_model, "Clp_newModel");
  find(clp.delete_model, "Clp_deleteModel");
  find(clp.set_log_level, "Clp_setLogLevel");
  find(clp.load_problem, "Clp_loadProblem");
  find(clp.set_optimization_direction, "Clp_setOptimizationDirection");
  find(clp.set_primal_tolerance, "Clp_setPrimalTolerance");
  find(clp.set_dual_tolerance, "Clp_setDualTolerance");
  find(clp.initial_solve, "Clp_initialSolve");
  find(clp.primal, "Clp_primal");
  find(clp.is_proven_optimal, "Clp_isProvenOptimal");
  find(clp.primal_column_solution, "Clp_primalColumnSolution");
  find(clp.primal_row_solution, "Clp_primalRowSolution");
  find(clp.dual_column_solution, "Clp_dualColumnSolution");
  find(clp.dual_row_solution, "Clp_dualRowSolution");
  find(clp.column_lower, "Clp_columnLower");
  find(clp.column_upper, "Clp_columnUpper");
  find(clp.row_lower, "Clp_rowLower");
  find(clp.row_upper, "Clp_rowUpper");
  find(clp.change_column_lower, "Clp_chgColumnLower");
  find(clp.change_column_upper, "Clp_chgColumnUpper");
  find(clp.change_row_lower, "Clp_chgRowLower");
  find(clp.change_row_upper, "Clp_chgRowUpper");
  find(clp.change_obj_coefficients, "Clp_chgObjCoefficients");
  return all ? std::optional(clp) : std::nullopt;
}

}  // namespace

const Clp* clp() {
  static const std::optional<Clp> kClp = loaded();
  return kClp ? &*kClp : nullptr;
}

}  // namespace forerun::cluster
