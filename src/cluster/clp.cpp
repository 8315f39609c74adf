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
  find(clp.newModel, "Clp_newModel");
  find(clp.deleteModel, "Clp_deleteModel");
  find(clp.setLogLevel, "Clp_setLogLevel");
  find(clp.loadProblem, "Clp_loadProblem");
  find(clp.setOptimizationDirection, "Clp_setOptimizationDirection");
  find(clp.setPrimalTolerance, "Clp_setPrimalTolerance");
  find(clp.setDualTolerance, "Clp_setDualTolerance");
  find(clp.initialSolve, "Clp_initialSolve");
  find(clp.primal, "Clp_primal");
  find(clp.isProvenOptimal, "Clp_isProvenOptimal");
  find(clp.primalColumnSolution, "Clp_primalColumnSolution");
  find(clp.primalRowSolution, "Clp_primalRowSolution");
  find(clp.dualColumnSolution, "Clp_dualColumnSolution");
  find(clp.dualRowSolution, "Clp_dualRowSolution");
  find(clp.columnLower, "Clp_columnLower");
  find(clp.columnUpper, "Clp_columnUpper");
  find(clp.rowLower, "Clp_rowLower");
  find(clp.rowUpper, "Clp_rowUpper");
  find(clp.chgColumnLower, "Clp_chgColumnLower");
  find(clp.chgColumnUpper, "Clp_chgColumnUpper");
  find(clp.chgRowLower, "Clp_chgRowLower");
  find(clp.chgRowUpper, "Clp_chgRowUpper");
  find(clp.chgObjCoefficients, "Clp_chgObjCoefficients");
  return all ? std::optional(clp) : std::nullopt;
}

}  // namespace

const Clp* clp() {
  static const std::optional<Clp> kClp = loaded();
  return kClp ? &*kClp : nullptr;
}

}  // namespace forerun::cluster
