// By how much longer kernels take in machines full of GPUs that train together than on the one GPU whose kernels were measured.
//
// Costs stem from ops measured on one H200, whose iterations never kept its tensor cores more than half busy. Published runs on
// Hopper GPUs in full machines, at lengths where communication is a few hundredths, took 1.2 to 1.3 times as long (LLM Foundry's
// rows to look at in data/scale/published_runs.json); those on A100 did not. The likely cause is power: products that keep tensor
// cores busy for long lower the clocks of a 700 W board. The stack's age is in the same figure and cannot be told apart.
#pragma once

#include <span>
#include <string>

#include "cost/op_cost.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

inline constexpr double kHopperPace = 0.8;  // of the measured speed, where products keep the tensor cores busy

// Whether it can be other than 1 there: half precision on Hopper GPUs and later.
bool slows_in_full_machines(const Device& device, Precision precision);

// 1: none. It sets in where products use so much of the tensor cores' peak that no measured iteration did.
double full_machine_slowdown(const Graph& graph, std::span<const OpCost> costs, const Device& device,
                             Precision precision);
std::string full_machine_text(double slowdown);  // for answers that say what they assume

}  // namespace forerun
