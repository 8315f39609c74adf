// WholeRun: the hours of a job once failures, checkpoints and slow GPUs are counted.
//
// Any GPU's failure stops the job, and failures come at any time alike: a cluster's mean time to failure is a GPU's divided by
// their number. What was done since the last checkpoint is lost, and a restart waits for the state to be read. Source of the
// best interval and of the hours: Daly, A higher order estimate of the optimum checkpoint interval for restart dumps (2006),
// which refines Young (1974). The usual figures are those of Llama 3 (Dubey et al., 2024): 419 unexpected interruptions in 54
// days of 16,384 GPUs, and storage that takes 2 TB/s of 2,048 nodes. GPUs' speeds are taken to be spread normally, and every
// step waits for the slowest. Left out: checkpoints written beside the training, spare nodes, failures that come in groups.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/quantity.h"

namespace forerun::scale {

inline constexpr double kUsualMttfHours = 54.0 * 24 * 16384 / 419;  // of one GPU, with its share of node and network
inline constexpr double kUsualRestartMinutes = 10;                  // an assumption; Llama 3 lost at most 17 each
inline constexpr double kUsualStorageRate = 2e12 / 2048;            // bytes per second, of one node

// What may befall a run; nothing: as it is usually.
struct RunRisks {
  std::optional<double> mttf_hours;       // of one GPU
  std::optional<double> restart_minutes;  // to find the failure, start again and read the state
  std::optional<double> storage_rate;     // bytes per second, of all nodes together
  double spread = 0;                      // standard deviation of GPUs' speeds over their mean

  [[nodiscard]] bool any() const { return mttf_hours || restart_minutes || storage_rate || spread > 0; }
};

struct RunLoad {
  double hours = 0;  // without any of it
  int64_t gpus = 1;
  int64_t nodes = 1;
  Bytes state;      // that a checkpoint has
  double busy = 1;  // share of the hours in which GPUs compute, as slow ones do for longer
};

struct WholeRun {
  double hours = 0;  // infinite where it never ends
  double low_hours = 0,
         high_hours =
             0;  // the same; with failures half and twice as often, and as few or many slow GPUs as 8 of 10 runs see
  double goodput = 1;             // hours without any of it over hours
  double failures = 0;            // to expect
  double mttf_hours = 0;          // of the cluster
  double checkpoint_seconds = 0;  // to write one
  double interval_minutes = 0;    // from one to the next, the best
  double slowdown = 1;            // of computation, by the slowest GPU

  // Whether it comes to an end: not where failures come sooner than a checkpoint is written.
  [[nodiscard]] bool ends() const { return std::isfinite(hours); }
};

WholeRun whole_run(const RunLoad& load, const RunRisks& risks);

// How many standard deviations the most of so many draws lies above the mean, at a share of such draws.
double largest_deviation(int64_t draws, double share);

}  // namespace forerun::scale
