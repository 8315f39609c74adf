// How gradients travel beside a backward pass: from gradients and a way to exchange them to communication tasks on network
// lanes. The one model of it: whatif adds it to traces, scale to the blocks of a plan, schedule asks its closed form.
//
// Every distributed optimization is one setting of this. Gradients become messages in the order they are ready: all in
// one (bulk-synchronous), one each (wait-free backpropagation, Zhang et al. 2017), in buckets (PyTorch's
// DistributedDataParallel), or merged by the rule of MG-WFBP (Shi et al. 2019): a gradient joins the message before it
// where that could not have left yet, or where waiting costs less than the latency saved. Messages may be cut into
// slices, and be sent in the order in which the next forward pass needs them (P3, Jayarajan et al. 2019; ByteScheduler,
// Peng et al. 2019): the lane's schedule then decides by priority. A message passes through stages, each on a lane of
// its own; messages share a lane one after the other, never in parts. The update waits for all of them, or, where
// `crosses` is set, is taken apart: each parameter is updated just before its next use, and waits for its own messages.
// Parameters that are shared out (ZeRO 3) are gathered before their uses (`add_gathers`). Communication and computation
// beside one another slow each other down (contention.h). What messages cost: exchange_costs.h. Assumed: all workers are
// alike and ready at the same moment, so that one stands for all.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "derive/gradient_buckets.h"
#include "timeline/contention.h"
#include "timeline/graph_edit.h"

namespace forerun {

// A parameter's gradient, by the tasks of an iteration.
struct TaskGradient {
  TaskId ready;  // the task of the GPU whose end completes it
  TaskId used;   // the first task of a forward pass that reads the parameter; invalid where that is not known
  Bytes bytes;
};

struct BackwardPass {
  std::vector<TaskGradient> gradients;  // in the order they are ready
  std::vector<TaskId> updates;          // tasks of the GPU that apply them, in order
};

// units: those of a block together, as FSDP wraps them (block_of in graph/op_modules.h), by the modules that tasks name; in buckets
// where they name fewer than two blocks.
enum class Grouping : uint8_t { whole, each, buckets, merged, units };

// The part of an exchange that occupies one lane: for `busy`; the next part may begin `lag` after that.
struct ExchangePart {
  size_t lane = 0;  // in GradientExchange::lanes
  Nanoseconds busy, lag;
  double slowed = 1;   // times as long where the GPU computes all the while
  double traffic = 0;  // of what the GPU's links can carry
};

struct GradientExchange {
  Grouping grouping = Grouping::buckets;
  Bytes bucket = kBucket;  // that closes a bucket
  Bytes first_bucket = kFirstBucket;
  Bytes slice{};             // messages are cut into parts of this many bytes; 0: not at all
  bool prioritised = false;  // parameters that are used first go first
  bool crosses = false;      // into the next iteration: no barrier at the update
  bool awaited = true;       // false: nobody waits for it (asynchronous training)
  std::vector<std::string> lanes = {"network"};
  std::function<std::vector<ExchangePart>(Bytes)> parts;  // of a message of so many bytes
  Nanoseconds latency{};                                  // what merging two messages saves
  // On the GPU, before a message leaves and after it has come: compression and its undoing. May be empty.
  std::function<Nanoseconds(Bytes)> before, after;
};

struct ExchangeCounts {
  int64_t messages = 0, slices = 0;
  Bytes bytes{};                           // of all gradients of a pass, on the average
  Nanoseconds exchange;                    // that the busiest lane takes, of all passes
  std::vector<ContendingTask> contending;  // by the ids of the edit
  std::vector<LaneId> lanes;               // that were added, one for each of the exchange
  // By pass and gradient: the last tasks of its exchange, several where it is cut into slices.
  std::vector<std::vector<std::vector<TaskId>>> arrived;
};

// Adds the exchange of every pass. `carried`: what holds back the next copy of a graph that holds one iteration alone.
ExchangeCounts add_exchange(GraphEdit& edit, const std::vector<BackwardPass>& passes, const GradientExchange& exchange,
                            std::vector<CarriedDependency>& carried);

// What else an optimization changes where it adds an exchange, before contention is looked at.
using AlsoChange = std::function<void(GraphEdit& edit, const std::vector<BackwardPass>& passes, ExchangeCounts& counts,
                                      std::vector<CarriedDependency>& carried)>;

// An iteration with its exchange, and with what both cost one another.
struct ExchangedTasks {
  TaskGraph tasks;
  std::vector<TaskId> now;  // by the ids of the iteration without it; invalid: taken out
  std::vector<CarriedDependency> carried;
  Nanoseconds exchange;  // that the busiest lane of the network takes, without contention
};
Result<ExchangedTasks> exchanged_tasks(const TaskGraph& iteration, const std::vector<BackwardPass>& passes,
                                       const GradientExchange& exchange, const AlsoChange& also = {});

// The edit's graph with contention; `now` as GraphEdit::build gives it, `contending` by the ids of the edit.
Result<TaskGraph> build_contended(const GraphEdit& edit, std::span<const ContendingTask> contending,
                                  std::vector<TaskId>& now);

// Parameters that other workers hold, gathered before they are used: in messages of at least `message` bytes in the order
// of use, one message ahead of the GPU: a message leaves when the first user of the one two before it has begun and, as one
// communicator runs collectives in the order they were issued, what that user sends is away.
struct ParameterUse {
  TaskId user;
  Bytes bytes;
  TaskId sends = {};    // the message of the user's own gradients; invalid: there is none
  bool closes = false;  // a message, where messages are units
};
struct ParameterGathering {
  LaneId lane;                               // of the network
  std::function<ExchangePart(Bytes)> costs;  // of a message; its lane is not read
  Bytes message = kBucket;                   // that closes a message
  bool units = false;                        // messages end where a use says so, whatever their size
  StepPhase phase = StepPhase::forward;
};
struct GatherCounts {
  std::vector<TaskId> first;  // the messages that wait for nothing yet: one or two
  std::vector<ContendingTask> contending;
  Nanoseconds exchange;  // all of them
};
GatherCounts add_gathers(GraphEdit& edit, std::span<const ParameterUse> uses, const ParameterGathering& gathering);

// By gradient: whether it is the last of those of its unit in a row. Empty where there are no units to go by.
std::vector<bool> unit_ends(const TaskGraph& tasks, std::span<const TaskGradient> gradients);

// Which gradients share a message, by the index of the last in each: what add_exchange does with `grouping`. `ready`: when
// each is, read where they are merged.
std::vector<size_t> message_ends(std::span<const Bytes> gradients, std::span<const Nanoseconds> ready,
                                 const GradientExchange& exchange);

// The same exchange in closed form, of gradients that a backward pass completes at an even pace: it adds the largest of
// `tail - hidden x backward`, one term for each message that could be the one which the network is never idle behind.
// Exact for messages of one stage that are not cut, without contention.
struct EvenExchange {
  struct Term {
    double hidden = 0;  // of the backward pass: what is left of it when the message leaves
    Nanoseconds tail;   // from then on, if the network is never idle
  };
  std::vector<Term> terms;
  [[nodiscard]] Nanoseconds exposed(Nanoseconds backward) const;
};
EvenExchange even_exchange(Bytes gradients, const GradientExchange& exchange);

}  // namespace forerun
