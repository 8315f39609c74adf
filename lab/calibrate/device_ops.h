// Ops that others measured on older GPUs, as the hybrid cost model sees them: what it says of them on the GPU that it was
// measured on, what the analytic model says of them there, and what was measured there.
//
// From NeuSight: fp32 forward ops on P4, P100, V100, T4 and A100 (with TF32 off), of extents drawn at random, each in a burst
// of some calls; and the ops of whole models on the same GPUs. From ETS: fp32 convolutions, forward and
// backward, of training on a T4 and an RTX 2080 Ti. Left out is what took less than 50 us, and, of NeuSight's tables, what took less
// than twice as long as the shortest op there: that is launching.
#pragma once

#include <string>
#include <vector>

#include "ingest/capture/op_sample.h"
#include "lab/calibrate/device_regression.h"
#include "predict/cost_models.h"

namespace forerun {

inline constexpr const char* kMatrixProduct = "matrix product";
inline constexpr const char* kElementwise = "element-wise";

// An op with what it was measured at.
struct DeviceOp {
  std::string gpu;   // as the catalogue calls it
  std::string kind;  // kMatrixProduct, "convolution", ...
  OpSample sample;
  double least_us = 0;  // of the table that it stands in; 0: its time is that of its kernels alone
};

// `neusight`: folder that its archive of op latencies was unpacked in. At most so many of a kind on a GPU, evenly chosen.
Result<std::vector<DeviceOp>> load_neusight_ops(const std::string& neusight, const DeviceCatalogue& devices,
                                                size_t most = 600);
// `neusight`: folder of its labels. GPUs that the catalogue does not know are passed over.
Result<std::vector<DeviceOp>> load_neusight_model_ops(const std::string& neusight, const DeviceCatalogue& devices);
// `ets`: folder of the authors' traces.
Result<std::vector<DeviceOp>> load_ets_convolutions(const std::string& ets, const DeviceCatalogue& devices,
                                                    size_t most = 1500);

// What boards that are one GPU under two names have in common: architecture and number of multiprocessors.
std::string chip_of(const Device& device);

// With the rates that boards sustain by this scale.
std::vector<hybrid::CarriedOp> carried_ops(const std::vector<DeviceOp>& ops, const CostModels& cost_models,
                                           const hybrid::DeviceScale& scale);

}  // namespace forerun
