// COIN-OR's Clp, by its C interface, loaded when a program is first solved.
//
// It is not linked: with it come BLAS and its threads, which took a sixth of the time of every short answer, and only a few
// scheduling policies solve linear programs. Where the library is missing, those are refused (policies.h).
#pragma once

namespace forerun::cluster {

using ClpModel = void;  // Clp_Simplex

// The functions of Clp_C_Interface.h that are called, under their names without "Clp_".
struct Clp {
  ClpModel* (*newModel)() = nullptr;
  void (*deleteModel)(ClpModel*) = nullptr;
  void (*setLogLevel)(ClpModel*, int) = nullptr;
  void (*loadProblem)(ClpModel*, int columns, int rows, const int* starts, const int* indices, const double* values,
                      const double* lower, const double* upper, const double* objective, const double* row_lower,
                      const double* row_upper) = nullptr;
  void (*setOptimizationDirection)(ClpModel*, double) = nullptr;
  void (*setPrimalTolerance)(ClpModel*, double) = nullptr;
  void (*setDualTolerance)(ClpModel*, double) = nullptr;
  int (*initialSolve)(ClpModel*) = nullptr;
  int (*primal)(ClpModel*, int values_pass) = nullptr;
  int (*isProvenOptimal)(ClpModel*) = nullptr;
  double* (*primalColumnSolution)(ClpModel*) = nullptr;
  double* (*primalRowSolution)(ClpModel*) = nullptr;
  double* (*dualColumnSolution)(ClpModel*) = nullptr;
  double* (*dualRowSolution)(ClpModel*) = nullptr;
  double* (*columnLower)(ClpModel*) = nullptr;
  double* (*columnUpper)(ClpModel*) = nullptr;
  double* (*rowLower)(ClpModel*) = nullptr;
  double* (*rowUpper)(ClpModel*) = nullptr;
  void (*chgColumnLower)(ClpModel*, const double*) = nullptr;
  void (*chgColumnUpper)(ClpModel*, const double*) = nullptr;
  void (*chgRowLower)(ClpModel*, const double*) = nullptr;
  void (*chgRowUpper)(ClpModel*, const double*) = nullptr;
  void (*chgObjCoefficients)(ClpModel*, const double*) = nullptr;
};

// Null where this machine has no libClp.so.1, or one without these functions.
const Clp* clp();

}  // namespace forerun::cluster
