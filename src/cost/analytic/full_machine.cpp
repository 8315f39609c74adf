#include "cost/analytic/full_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/analytic/analytic.h"
#include "derive/work.h"

namespace forerun {
namespace {

constexpr double kUnseen = 0.30, kBusy = 0.45;  // of the tensor cores' peak, over an iteration

// Of the peak of the units that run them, by products over the GPU's busy time.
double share_of_peak(const Graph& graph, std::span<const OpCost> costs, const Device& device, Precision precision) {
  double peak_ns = 0, busy_ns = 0;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    busy_ns += static_cast<double>(costs[i].gpu.value);
    const OpWork work = work_of(graph, graph.ops()[i]);
    if (work.gemm_count == 0 || !work.on_gpu) continue;
    if (const double rate = device.rate(arithmetic_unit(work, precision)); rate > 0) {
      peak_ns += work.flops.value / rate * 1e9;
    }
  }
  return busy_ns > 0 ? peak_ns / busy_ns : 0;
}

}  // namespace

bool slows_in_full_machines(const Device& device, Precision precision) {
  const bool half = precision != Precision::fp32 && precision != Precision::tf32;
  return half && device.compute_capability >= kHopper;
}

double full_machine_slowdown(const Graph& graph, std::span<const OpCost> costs, const Device& device,
                             Precision precision) {
  if (!slows_in_full_machines(device, precision)) return 1;
  const double share = share_of_peak(graph, costs, device, precision);
  return 1 + (1 / kHopperPace - 1) * std::clamp((share - kUnseen) / (kBusy - kUnseen), 0.0, 1.0);
}

std::string full_machine_text(double slowdown) {
  return fmt::format(
      "kernels take up to {:.2f} times as long as on one H200 alone, where products keep its tensor cores busy: so do "
      "published runs in full machines of Hopper GPUs",
      slowdown);
}

}  // namespace forerun
