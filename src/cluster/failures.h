// Failures: each unit works for an exponentially distributed time, fails, and is back after a fixed repair.
//
// What fails is a unit: a whole node where the pool has nodes, else one GPU. Because the exponential distribution forgets,
// the time to the next failure of a pool is drawn afresh from its number of working units after every failure or repair.
#pragma once

#include <deque>
#include <random>

#include "cluster/simulator.h"

namespace forerun::cluster {

class FailureProcess {
 public:
  struct Event {
    Time time = kNever;
    TypeIndex type = 0;
    int32_t gpus = 1;
    int32_t node = -1;  // of a repair, where the pool has nodes
    bool repair = false;
  };

  FailureProcess(const Cluster& cluster, const FailureModel& model);
  [[nodiscard]] bool active() const { return model_.mean_hours_between > 0; }

  // When the next failure or repair happens, given how many units of each type work now.
  Time next_time(Time now, const std::vector<int32_t>& units);
  // That event; of a failure only the type is known yet.
  Event take();
  // What has failed is back after the time that repairs take.
  void repair_later(Time now, Event failed);
  // A number below `count`.
  int32_t pick(int32_t count);

 private:
  double uniform();  // in (0, 1], the same on every machine
  FailureModel model_;
  std::mt19937_64 random_;
  std::vector<Event> next_failure_;  // by type; time kNever: to be drawn
  std::vector<bool> drawn_;
  std::deque<Event> repairs_;  // in order, as every repair takes equally long
};

}  // namespace forerun::cluster
