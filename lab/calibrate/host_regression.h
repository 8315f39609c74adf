// Fits the constants of the host model to measured iterations that the host bounds.
//
// What is fitted: a dozen costs (an op of each phase, a view of forward and backward, an optimizer op, a further kernel,
// a tensor of a list, a parameter, an op in host memory, the iteration) and how a calibration scales them. The costs are
// not negative, minimise the mean relative error (by least squares, weighted anew some times), and are held to rough
// figures where the iterations say little. Finer models, a cost for every class or name of op or for Python's modules,
// hold no better on families left out: what remains is the drift of the hosts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost/host/host.h"

namespace forerun {

// One iteration as measured.
struct HostSample {
  std::string family;
  HostCounts counts;
  HostCalibration calibration;
  double iteration_us = 0;
  double gpu_us = 0;  // that the GPU was busy: the iteration takes no less
};

struct HostRegressionOptions {
  double strength = 0.3;         // of the pull towards the rough figures, in relative errors
  double ridge = 1;              // of the pull of the weights of readings towards nothing
  double most_gpu_share = 0.75;  // samples where the GPU is busier than this are left out
  std::vector<std::string> forward_kinds = {"add", "multiply", "matmul", "convolution", "norm", "foreach"};
  std::vector<std::string> backward_kinds = {"view", "multiply", "matmul", "convolution", "norm"};
};

struct HostRegression {
  HostConstants constants;
  size_t samples = 0;  // that were used
  double error = 0;    // mean relative one of these
};

// An Error where there are no samples to fit to.
Result<HostRegression> calibrate_host_costs(std::span<const HostSample> samples,
                                            const HostRegressionOptions& options = {});

// What the constants say of a sample: as long as the host takes, but no less than the GPU.
double predicted_us(const HostSample& sample, const HostConstants& constants);

// Each family predicted by a fit to the others.
struct HeldOutFamily {
  std::string family;
  size_t samples = 0;
  double error = 0;  // mean relative one
  double bias = 0;   // mean of (predicted - measured) / measured
};
Result<std::vector<HeldOutFamily>> hold_out_families(std::span<const HostSample> samples,
                                                     const HostRegressionOptions& options = {});

}  // namespace forerun
