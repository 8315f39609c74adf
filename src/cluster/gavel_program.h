// Gavel's linear program: how much of its time each class of jobs spends on each type of GPU, alone or two to a GPU, so
// that the worst-off class gets as much as can be.
//
// A class is `jobs` like jobs: by symmetry some optimum treats them alike, so one set of variables does for all, and the
// program grows with the kinds of jobs and not with the jobs. Variables are GPU-sharing times of a whole class: x[c][t]
// of its jobs alone, p[c][d][t] of pairs. Every job is somewhere at most all of the time, every type has so many GPUs.
//
// Many allocations are equally good to the worst-off. Of those the one is taken that gets the jobs most done, each
// measured by what it could do on its fastest type; of what is still alike earlier classes go first, and to the types
// that they are fastest on. That leaves one answer, in whatever order the solver sees the program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace forerun::cluster {

struct GavelClass {
  double jobs = 1;
  int32_t gpus = 1;
  std::vector<double> rates;  // by type: what it is worth to one of them to run there all the time; 0: it cannot
};

struct GavelShare {
  size_t a = 0;  // class
  size_t b = 0;  // of the pair; the same as `a` and `alone`: no pair
  uint32_t type = 0;
  bool alone = true;
  double time = 0;  // of all jobs of the class together, or of all such pairs
  friend bool operator==(const GavelShare&, const GavelShare&) = default;
};

struct GavelAnswer {
  double worst = 0;  // what a job of the worst-off class gets
  std::vector<GavelShare> shares;
};

// The speeds of a job of class `a` and one of class `b` that share a GPU; nothing: they cannot.
using PairSpeeds = std::function<std::optional<std::pair<double, double>>(size_t a, size_t b, uint32_t type)>;

// What is asked of the program.
struct GavelQuestion {
  bool shares = true;    // false: only what the worst-off gets
  uint64_t shuffle = 0;  // as LinearProgram::maximize() takes it
};

// Classes in order of their first arrivals; `gpus` by type. Nothing where no class can run. Times are multiples of 2^-20.
std::optional<GavelAnswer> solve_gavel(const std::vector<GavelClass>& classes, const std::vector<int32_t>& gpus,
                                       const PairSpeeds& pairs = {}, const GavelQuestion& question = {});

}  // namespace forerun::cluster
