#include "whatif/op_timer.h"

#include <algorithm>
#include <cmath>

#include "cost/analytic/analytic.h"
#include "derive/precision_support.h"

namespace forerun::whatif {

Result<OpTimer> OpTimer::on(const std::string& gpu) const {
  if (!lookup_) return Error{"no other devices are known here", gpu, ""};
  return lookup_(gpu);
}

std::vector<OpCost> OpTimer::costs(const Graph& graph, const TrainingSetup& setup) const {
  const TrainingSetup own = derive::setup_on(setup, device_);
  std::vector<OpCost> costs = residual_model_ == nullptr
                                  ? analytic_costs(graph, device_, own, constants_)
                                  : hybrid::hybrid_costs(graph, device_, own, constants_, *residual_model_, other_);
  if (correction_) correction_(graph, setup, costs);
  return costs;
}

std::optional<double> OpTimer::seconds(const TracedOp& op, const Variant& variant) const {
  const std::optional<Graph> graph = graph_of(op, variant);
  if (!graph) return std::nullopt;
  TrainingSetup setup;
  setup.precision = variant.precision;
  setup.channels_last = variant.channels_last;
  const std::vector<OpCost> all = costs(*graph, setup);
  const auto nanoseconds = static_cast<double>(all.front().gpu.value);
  return nanoseconds > 0 ? std::optional(nanoseconds * 1e-9) : std::nullopt;
}

std::optional<double> OpTimer::ratio(const TracedOp& op, const Variant& from, const Variant& to) const {
  const std::optional<double> before = seconds(op, from);
  const std::optional<double> after = seconds(op, to);
  if (!before || !after) return std::nullopt;
  return std::clamp(*after / *before, 0.02, 50.0);
}

Nanoseconds OpTimer::memory_time(double bytes) const {
  const double share = constants_.of(OpClass::elementwise, "add").memory;
  return Nanoseconds(std::llround(bytes / (device_.memory_bandwidth * share) * 1e9)) + constants_.kernel_floor;
}

}  // namespace forerun::whatif
