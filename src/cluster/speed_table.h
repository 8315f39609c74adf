// SpeedTable: measured step times of one application by GPUs, nodes and batch, and what they say of other sizes.
//
// A step trains a fixed total batch; fewer GPUs mean a larger local batch on each. Between measured batches and numbers of
// GPUs times are interpolated linearly; a local batch beyond the largest measured is split into equal passes, of which
// only the last synchronises. Fewer nodes than needed for the GPUs cannot be asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace forerun::cluster {

class SpeedTable {
 public:
  // One measurement: seconds of a step, of which `sync` are communication.
  void add(int32_t gpus, int32_t nodes, double local_batch, double step, double sync);
  void finish();  // after the last add()
  // Forgets larger local batches, of an application that does not fit more at a time.
  void drop_batches_above(double local_batch);

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Seconds of a step with that total batch; nothing where nothing like it was measured.
  [[nodiscard]] std::optional<double> step(int32_t gpus, int32_t nodes, double batch) const;
  [[nodiscard]] int32_t most_gpus() const;

 private:
  struct Point {
    double batch = 0, step = 0, sync = 0;
  };
  using Points = std::vector<Point>;  // by local batch
  struct Place {
    int32_t gpus = 0, nodes = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  static double at(const Points& points, double local_batch);
  // Of the measured numbers of nodes for so many GPUs the one nearest to that asked for.
  [[nodiscard]] const Points* nearest(int32_t gpus, int32_t nodes) const;

  std::map<Place, Points> rows_;
};

// How fast jobs run with other than their stated GPUs or on more nodes than needed, relative to their truth.
class SpeedModel {
 public:
  // Of job `kind`s by GPU type, one for all types where there is but one; a job without a table runs at a speed in
  // proportion to its GPUs.
  std::vector<std::vector<SpeedTable>> tables;  // by Workload::kinds, then by pool of the cluster
  std::vector<double> batch;                    // by job: its total batch
  int32_t gpus_per_node = 4;                    // where the cluster does not say

  struct Question {
    uint32_t job = 0;
    int32_t kind = -1;
    uint32_t type = 0;
    int32_t stated = 1;  // GPUs
    int32_t gpus = 1;
    int32_t nodes = 0;  // 0: as few as possible
  };
  // Nothing where that was not measured.
  [[nodiscard]] std::optional<double> measured_speed(const Question& question) const;
  [[nodiscard]] double speed(const Question& question) const;
};

}  // namespace forerun::cluster
