// Fits how a calibration of the host scales its costs (HostScale), given the costs.
//
// Each kind of reading gets a weight that is not negative; the weights minimise the mean relative error of the calibrated
// iterations (by least squares, weighted anew some times) and are held to nothing by `ridge`, so that readings which say
// the same share what there is to say.
#pragma once

#include <span>

#include "lab/calibrate/host_regression.h"

namespace forerun {

// Equal weights at the samples' geometric mean readings: where the fit begins.
HostScale first_scale(std::span<const HostSample* const> samples, const HostRegressionOptions& options);

// The scale for these costs; constants.scale where no sample is calibrated.
HostScale calibrate_host_scale(std::span<const HostSample* const> samples, const HostConstants& constants,
                               const HostRegressionOptions& options);

// Mean relative error of what the constants say of the samples.
double mean_error(std::span<const HostSample* const> samples, const HostConstants& constants);

}  // namespace forerun
