// Ops of run records and of the ETS authors' traces in one form, so that one network learns from GPUs of both.
//
// Records call an op by its name in PyTorch and list extents; the traces call it by a number and list other parameters. What both
// tell becomes a row: the class of the op as its name, phase and type, FLOPs, bytes that it reads and writes, extents of its (first) product,
// groups, places of its window, and tensors that it updates. Of the traces' products backward counts twice forward, as it does in records.
// Gaps, host and order stay as they were.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lab/dataset/dataset.h"
#include "lab/dataset/known_devices.h"
#include "lab/learn/ets/op_scales.h"

namespace forerun::learn {

// The same examples with rows in the shared form.
DataSet in_shared_form(const DataSet& data);

// Whether an op is called by a number, as the authors do.
bool is_traced_name(std::string_view name);

// Scales of ops in the shared form: times by the roofline of the GPU, gaps a constant.
std::vector<OpScale> shared_scales(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                                   const Device& device);

}  // namespace forerun::learn
