// The optimizations that a what-if can apply, by name.
//
// Each is a function that changes a EditableIteration through the primitives of graph_edit.h and says what it assumed, in a short file
// of its own; the list in optimizations.cpp is where one is added.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "whatif/editable_iteration.h"

namespace forerun::whatif {

// "factor" -> "2", as given behind the name: batch:factor=2.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  [[nodiscard]] bool has(const std::string& key) const { return values_.contains(key); }
  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise = "") const;
  // A number above zero: from 1e-6 to 1e9.
  [[nodiscard]] Result<double> positive(const std::string& key, double otherwise) const;
  [[nodiscard]] const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

struct Optimization {
  std::string_view name;
  std::string_view summary;                  // one line
  std::vector<std::string_view> parameters;  // keys it takes
  Status (*apply)(EditableIteration&, const Parameters&);
  bool ranked = true;  // makes sense without parameters, for the same work
};

std::span<const Optimization> optimizations();

struct Application {
  const Optimization* optimization = nullptr;
  Parameters parameters;
  std::string text;  // as it was written
};

// "amp", "faster_kernel:match=gemm,factor=2". An Error names what there is.
Result<Application> parse_application(const std::string& text);
Result<std::vector<Application>> parse_applications(const std::vector<std::string>& texts);
// The same with one more parameter: "p3:workers=4" and network=10gbe. One that it has or does not take is an Error.
Result<Application> with_parameter(const Application& application, const std::string& key, const std::string& value);

// For those that change what autograd keeps from the forward pass: an Error where the model is compiled, which settles that itself.
Status check_eager(const EditableIteration& edited, const std::string& name);

// One file each.
Status apply_amp(EditableIteration& edited, const Parameters& parameters);
Status apply_tf32(EditableIteration& edited, const Parameters& parameters);
Status apply_channels_last(EditableIteration& edited, const Parameters& parameters);
Status apply_fused_adam(EditableIteration& edited, const Parameters& parameters);
Status apply_foreach_adam(EditableIteration& edited, const Parameters& parameters);
Status apply_batch(EditableIteration& edited, const Parameters& parameters);
Status apply_faster_kernel(EditableIteration& edited, const Parameters& parameters);
Status apply_gpu(EditableIteration& edited, const Parameters& parameters);
Status apply_cuda_graphs(EditableIteration& edited, const Parameters& parameters);
Status apply_compile(EditableIteration& edited, const Parameters& parameters);
Status apply_fusion(EditableIteration& edited, const Parameters& parameters);
Status apply_metaflow(EditableIteration& edited, const Parameters& parameters);
Status apply_restructured_batch_norm(EditableIteration& edited, const Parameters& parameters);
Status apply_data_loading(EditableIteration& edited, const Parameters& parameters);
Status apply_checkpointing(EditableIteration& edited, const Parameters& parameters);
Status apply_vdnn(EditableIteration& edited, const Parameters& parameters);
Status apply_gist(EditableIteration& edited, const Parameters& parameters);
// Distributed, from the trace of one GPU; parameters of all: network_parameters.h.
Status apply_ddp(EditableIteration& edited, const Parameters& parameters);
Status apply_bsp(EditableIteration& edited, const Parameters& parameters);
Status apply_wfbp(EditableIteration& edited, const Parameters& parameters);
Status apply_mg_wfbp(EditableIteration& edited, const Parameters& parameters);
Status apply_parameter_server(EditableIteration& edited, const Parameters& parameters);
Status apply_p3(EditableIteration& edited, const Parameters& parameters);
Status apply_bytescheduler(EditableIteration& edited, const Parameters& parameters);
Status apply_dgc(EditableIteration& edited, const Parameters& parameters);
Status apply_quantize(EditableIteration& edited, const Parameters& parameters);
Status apply_zero(EditableIteration& edited, const Parameters& parameters);

}  // namespace forerun::whatif
