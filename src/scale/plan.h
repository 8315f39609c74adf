// Plan: how a model's training is spread over GPUs.
//
// GPUs = tensor x context x data x pipeline, laid out in this order. A data-parallel replica works through `micro_batches`
// micro-batches a step. The GPUs of a context group hold the same weights and a part of every sequence each; experts are
// dealt out to neighbours among the data-parallel GPUs. Written on the command line as "tp=8,pp=8,zero=1,mb=2,checkpoint",
// or as one name: dp, ddp, zero1, zero2, zero3, fsdp, hsdp, ps, ps-async, tp, pp. What a text leaves open (data, micro-batches)
// follows from the number of GPUs and the global batch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun::scale {

enum class Exchange : uint8_t { all_reduce, servers, servers_async };  // of gradients
std::string_view name_of(Exchange exchange);

// Which gradients of a replica travel together, and in which order.
enum class Schedule : uint8_t { buckets, whole, each, merged, prioritised };
std::string_view name_of(Schedule schedule);  // "buckets", "BSP", "WFBP", "MG-WFBP", "ByteScheduler"

struct Plan {
  int64_t tensor = 1;
  int64_t context = 1;  // GPUs that share a sequence
  int64_t data = 1;
  int64_t experts = 1;  // data-parallel GPUs that experts, or DLRM's tables, are dealt out to
  int64_t pipeline = 1;
  int64_t chunks = 1;  // parts of the model on each GPU of a pipeline; 1: plain 1F1B
  int64_t micro_batch = 1;
  int64_t micro_batches = 1;
  int zero = 0;              // 0 to 3
  int64_t shard = 0;         // ZeRO 3: GPUs that share a copy (HSDP); 0: all that have the same weights
  bool reshard = true;       // ZeRO 3: gathered parameters are given up behind a block's forward pass
  bool checkpoint = false;   // each layer's forward pass is run again for its backward pass
  bool selective = false;    // of that, only what is cheap to run again
  bool sequence = false;     // a tensor group divides what it does not share along the sequence
  bool zero_bubble = false;  // gradients of weights fill the pipeline's waits (ZB-H1)
  bool overlap = true;       // gradients travel while the backward pass goes on
  bool offload = false;      // the optimizer is on the host (offload.h)
  Exchange exchange = Exchange::all_reduce;
  int64_t servers = 1;                    // on as many nodes; a request leaves them open with 0: one a node
  Schedule schedule = Schedule::buckets;  // other than buckets: of plain replicas of a model that goes by its graph

  [[nodiscard]] int64_t gpus() const { return tensor * context * data * pipeline; }
  [[nodiscard]] int64_t replicas() const { return context * data; }  // GPUs with the same weights, experts apart
  [[nodiscard]] int64_t shards() const { return shard > 0 ? shard : replicas(); }
  [[nodiscard]] int64_t global_batch() const { return data * micro_batch * micro_batches; }
};

// "tp 8, dp 8, pp 8 x2, mb 1 x 24, ZeRO 1, checkpoint".
std::string describe(const Plan& plan);

// A plan as the user writes it. Fields that are not in it are 0 where the number of GPUs and the batch decide.
struct PlanRequest {
  Plan plan;                    // data, micro_batch and micro_batches may be 0: open
  bool names_tensor = false;    // "tp" alone: as many GPUs as there are, within a node
  bool names_pipeline = false;  // "pp" alone
  bool names_hsdp = false;      // ZeRO 3 within each node, copied outside: what `shard` is follows from the node
  bool names_layers = false;    // says how layers are shared or dealt out, tp=1 and pp=1 too: tp, pp, sp, zb
};
Result<PlanRequest> parse_plan(std::string_view text);

// Whether groups of so many neighbouring GPUs lie within nodes, or fill several.
bool fills_nodes(int64_t group, int64_t gpus, int64_t node);

// "choose tp=4 or tp=8": the nearest tensor groups that divide the GPUs, fill nodes, and that the model can be shared by.
std::string nearest_tensor_groups(int64_t wanted, int64_t gpus, int64_t node,
                                  const std::function<bool(int64_t)>& shares);

// The plan of so many GPUs and samples a step. An Error where they do not divide, or groups lie across the ends of nodes.
// `micro_batch`: 0: the largest up to `usual` that the global batch can be made of.
Result<Plan> complete(const PlanRequest& request, int64_t gpus, int64_t node, int64_t global_batch, int64_t micro_batch,
                      int64_t usual = 1);

// Why such a plan makes no sense for any model; ok where it does.
Status check_plan(const Plan& plan);

}  // namespace forerun::scale
