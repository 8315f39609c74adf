// The file of the hybrid cost model (its card: data/cost/README.md): a section `head`, which says what was seen, and one with
// the forests of each kind of kernel.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cost/hybrid/hybrid.h"

namespace forerun::hybrid {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kHybridFile = "cost/hybrid.bin";

// The whole file is held to its checksums; forests are unpacked when they are asked.
Result<ResidualModel> load_residual_model(const std::filesystem::path& file);
Status save_residual_model(const ResidualModel& residual_model, const std::filesystem::path& file);
// The same without files.
Result<std::string> to_bytes(const ResidualModel& residual_model);
Result<ResidualModel> from_bytes(std::string bytes);

// The section `head` alone: the model without its forests.
std::string head_to_bytes(const ResidualModel& residual_model);
Result<ResidualModel> head_from_bytes(std::string_view bytes);

}  // namespace forerun::hybrid
