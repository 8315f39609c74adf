// COIN-OR's Clp, by its C interface, loaded when a program is first solved.
//
// It is not linked: with it come BLAS and its threads, which took a sixth of the time of every short answer, and only a few
// scheduling policies solve linear programs. Where the library is missing, those are refused (policies.h).
#pragma once

namespace forerun::cluster {

using ClpModel = void;  // Clp_Simplex

// The functions of Clp_C_Interface.h that are called.
struct Clp {
  ClpModel* (*new_model)() = nullptr;
  void (*delete_model)(ClpModel*) = nullptr;
  void (*set_log_level)(ClpModel*, int) = nullptr;
  void (*load_problem)(ClpModel*, int columns, int rows, const int* starts, const int* indices, const double* values,
                       const double* lower, const double* upper, const double* objective, const double* row_lower,
                       const double* row_upper) = nullptr;
  void (*set_optimization_direction)(ClpModel*, double) = nullptr;
  void (*set_primal_tolerance)(ClpModel*, double) = nullptr;
  void (*set_dual_tolerance)(ClpModel*, double) = nullptr;
  int (*initial_solve)(ClpModel*) = nullptr;
  int (*primal)(ClpModel*, int values_pass) = nullptr;
  int (*is_proven_optimal)(ClpModel*) = nullptr;
  double* (*primal_column_solution)(ClpModel*) = nullptr;
  double* (*primal_row_solution)(ClpModel*) = nullptr;
  double* (*dual_column_solution)(ClpModel*) = nullptr;
  double* (*dual_row_solution)(ClpModel*) = nullptr;
  double* (*column_lower)(ClpModel*) = nullptr;
  double* (*column_upper)(ClpModel*) = nullptr;
  double* (*row_lower)(ClpModel*) = nullptr;
  double* (*row_upper)(ClpModel*) = nullptr;
  void (*change_column_lower)(ClpModel*, const double*) = nullptr;
  void (*change_column_upper)(ClpModel*, const double*) = nullptr;
  void (*change_row_lower)(ClpModel*, const double*) = nullptr;
  void (*change_row_upper)(ClpModel*, const double*) = nullptr;
  void (*change_obj_coefficients)(ClpModel*, const double*) = nullptr;
};

// Null where this machine has no libClp.so.1, or one without these functions.
const Clp* clp();

}  // namespace forerun::cluster
