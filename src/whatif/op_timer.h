// OpTimer: how much longer or shorter the kernels of a traced op take in another precision or layout.
//
// Products, convolutions, norms and attention: the ratio of what the project's cost model (cost/hybrid, grown on measured
// ops of all three precisions) says for this very shape in both variants. Everything else moves memory: what lasts beyond
// the floor of a kernel shrinks with the bytes. The measured duration is scaled by the ratio, never replaced.
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "cost/analytic/constants.h"
#include "cost/generated/generated.h"
#include "cost/host/host.h"
#include "cost/hybrid/hybrid.h"
#include "derive/dispatch.h"
#include "device/device.h"
#include "whatif/traced_op.h"

namespace forerun::whatif {

class OpTimer {
 public:
  // `other`: where the device is not the one that the residual model was measured on.
  OpTimer(Device device, AnalyticConstants constants, const hybrid::ResidualModel* residual_model,
          std::optional<hybrid::OtherGpu> other = std::nullopt)
      : device_(std::move(device)),
        constants_(std::move(constants)),
        residual_model_(residual_model),
        other_(std::move(other)) {}

  // Time in `to` over time in `from`; nothing where the cost model cannot be asked about the op.
  [[nodiscard]] std::optional<double> ratio(const TracedOp& op, const Variant& from, const Variant& to) const;

  [[nodiscard]] std::optional<double> seconds(const TracedOp& op, const Variant& variant) const;

  // GPU time of every op of a graph.
  [[nodiscard]] std::vector<OpCost> costs(const Graph& graph, const TrainingSetup& setup) const;

  // What the host takes; without it, what-ifs keep to the trace's host times.
  void set_host(HostConstants host, const LoopCosts& loops = {}) {
    host_ = std::move(host);
    loops_ = loops;
  }
  [[nodiscard]] const std::optional<HostConstants>& host() const { return host_; }

  // What compiled models cost; without it none can be asked about.
  void set_compile(const CompileConstants& constants) { compile_ = constants; }
  [[nodiscard]] const std::optional<CompileConstants>& compile() const { return compile_; }

  // A machine that was read: what it changes of the GPU times of a graph, and how fast its host is beside the one of the constants.
  using Correction = std::function<void(const Graph&, const TrainingSetup&, std::vector<OpCost>&)>;
  void set_machine(Correction correction, double host_speed) {
    correction_ = std::move(correction);
    host_speed_ = host_speed;
  }
  [[nodiscard]] double host_speed() const { return host_speed_; }
  [[nodiscard]] const LoopCosts& loops() const { return loops_; }

  // Timers for other devices, by name.
  using Lookup = std::function<Result<OpTimer>(const std::string& gpu)>;
  void set_lookup(Lookup lookup) { lookup_ = std::move(lookup); }
  [[nodiscard]] Result<OpTimer> on(const std::string& gpu) const;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] Nanoseconds kernel_floor() const { return constants_.kernel_floor; }
  // Moving so many bytes in one pass of large kernels.
  [[nodiscard]] Nanoseconds memory_time(double bytes) const;

 private:
  Device device_;
  AnalyticConstants constants_;
  const hybrid::ResidualModel* residual_model_;  // null: the analytic model alone
  std::optional<hybrid::OtherGpu> other_;
  std::optional<HostConstants> host_;
  LoopCosts loops_;
  std::optional<CompileConstants> compile_;
  Correction correction_;
  double host_speed_ = 1;
  Lookup lookup_;
};

}  // namespace forerun::whatif
