// How gradients travel: from backward passes and a way to exchange them to communication tasks on network lanes.
//
// Every distributed optimization is one setting of this. Gradients become messages in the order they are ready: all in
// one (bulk-synchronous), one each (wait-free backpropagation, Zhang et al. 2017), in buckets (PyTorch's
// DistributedDataParallel), or merged by the rule of MG-WFBP (Shi et al. 2019): a gradient joins the message before it
// where that could not have left yet, or where waiting costs less than the latency saved. Messages may be cut into
// slices, and be sent in the order in which the next forward pass needs them (P3, Jayarajan et al. 2019; ByteScheduler,
// Peng et al. 2019): the lane's schedule then decides by priority. A message passes through stages, each on a lane of
// its own; messages share a lane one after the other, never in parts. The update waits for all of them, or, where
// `crosses` is set, is taken apart: each parameter is updated just before its next use, and waits for its own messages.
// Communication and computation beside one another slow each other down (`contended`). Assumed: all workers are alike and
// ready at the same moment, so that one stands for all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "timeline/graph_edit.h"

namespace forerun::whatif {

struct Gradient {
  TaskId ready;  // the task of the GPU whose end completes it
  TaskId used;   // the first task of a forward pass that reads the parameter; invalid where that is not known
  Bytes bytes;
};

struct BackwardPass {
  std::vector<Gradient> gradients;  // in the order they are ready
  std::vector<TaskId> updates;      // tasks of the GPU that apply them, in order
};

enum class Grouping : uint8_t { whole, each, buckets, merged };

// The part of an exchange that occupies one lane: for `busy`; the next part may begin `lag` after that.
struct ExchangePart {
  size_t lane = 0;  // in GradientExchange::lanes
  Nanoseconds busy, lag;
  double slowed = 1;   // times as long where the GPU computes all the while
  double traffic = 0;  // of what the GPU's links can carry
};

struct GradientExchange {
  Grouping grouping = Grouping::buckets;
  Bytes bucket = Bytes(25 << 20);       // that closes a bucket
  Bytes first_bucket = Bytes(1 << 20);  // the first one is small, so that the exchange begins early
  Bytes slice{};                        // messages are cut into parts of this many bytes; 0: not at all
  bool prioritised = false;             // parameters that are used first go first
  bool crosses = false;                 // into the next iteration: no barrier at the update
  bool awaited = true;                  // false: nobody waits for it (asynchronous training)
  std::vector<std::string> lanes = {"network"};
  std::function<std::vector<ExchangePart>(Bytes)> parts;  // of a message of so many bytes
  Nanoseconds latency{};                                  // what merging two messages saves
  // On the GPU, before a message leaves and after it has come: compression and its undoing. May be empty.
  std::function<Nanoseconds(Bytes)> before, after;
};

// A communication task that takes from computation, and computation from it.
struct ContendingTask {
  TaskId task;
  double slowed = 1, traffic = 0;  // as in ExchangePart
};

struct ExchangeCounts {
  int64_t messages = 0, slices = 0;
  Bytes bytes{};                           // of all gradients of a pass, on the average
  std::vector<ContendingTask> contending;  // by the ids of the edit
};

// Adds the exchange of every pass. `carried`: what holds back the next copy of a graph that holds one iteration alone.
ExchangeCounts add_exchange(GraphEdit& edit, const std::vector<BackwardPass>& passes, const GradientExchange& exchange,
                            std::vector<CarriedDependency>& carried);

// The graph with longer durations where communication and computation run beside one another: tasks of communication by
// what they say; kernels of a stream by kComputationSlowdown at full traffic.
Result<TaskGraph> contended(const TaskGraph& graph, std::span<const ContendingTask> tasks);

// Lee et al. (2025, "Characterizing Compute-Communication Overlap"): on A100, H100, MI210 and MI250 computation beside
// collectives was 18.9 % slower on the average. Daydream (Zhu et al., 2020): collectives of NCCL beside computation took
// 34 % longer on the average, on machines of four RTX 2080 Ti.
inline constexpr double kComputationSlowdown = 1.189, kCollectiveSlowdown = 1.34;

// Which gradients share a message, by the index of the last in each: what add_exchange does with `grouping`. `ready`:
// when each is.
std::vector<size_t> message_ends(const std::vector<Gradient>& gradients, const std::vector<Nanoseconds>& ready,
                                 const GradientExchange& exchange);

}  // namespace forerun::whatif
