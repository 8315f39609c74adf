#include "whatif/optimizations.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/options_text.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {
namespace {

constexpr double kLeastParameter = 1e-6, kLargestParameter = 1e9;

// The parameters of a distributed optimization: its own, and the network's.
std::vector<std::string_view> over_network(std::vector<std::string_view> own) {
  own.insert(own.begin(), std::begin(kNetworkKeys), std::end(kNetworkKeys));
  return own;
}

}  // namespace

std::span<const Optimization> optimizations() {
  static const std::vector<Optimization> kAll = {
      {"amp", "automatic mixed precision in bfloat16 (rule=daydream: the paper's constants)", {"rule"}, apply_amp},
      {"tf32", "matrix products on TF32 tensor cores", {}, apply_tf32},
      {"channels_last", "convolutional networks in channels-last layout", {}, apply_channels_last},
      {"fused_adam", "Adam's update in one fused kernel", {}, apply_fused_adam},
      {"foreach_adam", "Adam's update by multi-tensor kernels", {}, apply_foreach_adam},
      {"batch", "another batch size: factor=2 for the double", {"factor"}, apply_batch, false},
      {"faster_kernel",
       "kernels whose name contains match, faster by factor",
       {"match", "factor"},
       apply_faster_kernel,
       false},
      {"gpu", "the same on another GPU: name=a100_80gb", {"name"}, apply_gpu, false},
      {"cuda_graphs", "the iteration launched as one CUDA graph", {}, apply_cuda_graphs},
      {"compile",
       "the model under torch.compile: mode=default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
       {"mode"},
       apply_compile},
      {"fusion",
       "chains of elementwise kernels in one each (epilogues=1: behind products and norms too)",
       {"epilogues"},
       apply_fusion},
      {"metaflow",
       "a substitution: layers or ops removed or scaled",
       {"remove", "scale", "factor"},
       apply_metaflow,
       false},
      {"restructured_batch_norm", "batch norms fused with their neighbours", {}, apply_restructured_batch_norm},
      {"data_loading", "batches loaded by so many workers beside the training", {"workers"}, apply_data_loading},
      {"checkpointing",
       "activations recomputed in the backward pass (saves memory)",
       {"segments"},
       apply_checkpointing},
      {"vdnn",
       "inputs of convolutions offloaded to the host and fetched back (saves memory)",
       {"gb_per_s"},
       apply_vdnn},
      {"gist", "activations encoded for the backward pass (saves memory)", {}, apply_gist},
      {"ddp", "data-parallel, buckets all-reduced beside the backward pass: workers=8,network=10gbe",
       over_network({"bucket_mb", "algorithm"}), apply_ddp, false},
      {"bsp", "data-parallel, one all-reduce behind the backward pass", over_network({"algorithm"}), apply_bsp, false},
      {"wfbp", "data-parallel, one all-reduce a gradient (wait-free backpropagation)", over_network({"algorithm"}),
       apply_wfbp, false},
      {"mg_wfbp", "data-parallel, gradients merged where that saves time (MG-WFBP)", over_network({"algorithm"}),
       apply_mg_wfbp, false},
      {"parameter_server", "data-parallel by parameter servers, mode=sync or async",
       over_network({"servers", "mode", "slice_mb", "colocated"}), apply_parameter_server, false},
      {"p3", "parameter servers, slices by the order of their next use", over_network({"servers", "slice_mb"}),
       apply_p3, false},
      {"bytescheduler", "all-reduce of slices by the order of their next use",
       over_network({"algorithm", "slice_mb", "credit_mb"}), apply_bytescheduler, false},
      {"dgc", "data-parallel, the largest share of gradients only: density=0.001", over_network({"density"}), apply_dgc,
       false},
      {"quantize", "data-parallel, gradients of fewer bits: bits=8", over_network({"bits"}), apply_quantize, false},
      {"zero", "data-parallel with sharded state: stage=1, 2 or 3", over_network({"stage"}), apply_zero, false},
  };
  return kAll;
}

Status check_eager(const EditableIteration& edited, const std::string& name) {
  if (edited.setup.compile == CompileMode::none) return {};
  return Error{name + " is not predicted of a compiled model", "--apply " + name, "apply one of compile and " + name};
}

std::string Parameters::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second;
}

Result<double> Parameters::positive(const std::string& key, double otherwise) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return otherwise;
  const std::string& given = found->second;
  const auto value = number_in(given);
  if (!value || !(*value > 0)) {
    return Error{"'" + given + "' is no number above zero", key, "give one, as " + key + "=2"};
  }
  if (*value < kLeastParameter || *value > kLargestParameter) {
    return Error{"'" + given + "' is out of range", key, "give a number from 1e-6 to 1e9"};
  }
  return *value;
}

Result<Application> parse_application(const std::string& text) {
  const OptionGrammar grammar{"--apply", "write NAME or NAME:PARAMETER=VALUE,PARAMETER=VALUE"};
  const auto named = parse_named_options(text, grammar);
  if (!named) return named.error();
  const std::string& name = named->name;
  Application made{.text = text};
  std::vector<std::string> names;
  for (const Optimization& optimization : optimizations()) {
    names.emplace_back(optimization.name);
    if (optimization.name == name) made.optimization = &optimization;
  }
  if (made.optimization == nullptr) {
    return Error{"there is no optimization '" + name + "'", "--apply", did_you_mean(name, names)};
  }
  std::map<std::string, std::string> values;
  const std::vector<std::string> known(made.optimization->parameters.begin(), made.optimization->parameters.end());
  for (const auto& [key, value] : named->options) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return unknown_key(key, known, {"--apply " + text, ""});
    }
    values.emplace(key, value);
  }
  made.parameters = Parameters(std::move(values));
  return made;
}

Result<Application> with_parameter(const Application& application, const std::string& key, const std::string& value) {
  const char* joint = application.parameters.values().empty() ? ":" : ",";
  return parse_application(application.text + joint + key + "=" + value);
}

Result<std::vector<Application>> parse_applications(const std::vector<std::string>& texts) {
  std::vector<Application> applications;
  for (const std::string& text : texts) {
    auto application = parse_application(text);
    if (!application) return application.error();
    applications.push_back(std::move(*application));
  }
  return applications;
}

}  // namespace forerun::whatif
