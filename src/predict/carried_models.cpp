#include "predict/carried_models.h"

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/provenance.h"
#include "predict/cost_models.h"

namespace forerun {
namespace {

// The GPUs that the kept errors are of, and the measured one. Others may join the catalogue without making those stale.
constexpr const char* kJudgedDevices[] = {"a100_40gb_pcie", "a100_80gb_pcie", "h200", "p100_pcie", "p4", "t4",
                                          "v100_pcie"};

}  // namespace

Result<std::string> carried_models_fingerprint() {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto measured = cost_models_fingerprint();
  if (!measured) return measured.error();
  std::vector<std::filesystem::path> files = {*folder / hybrid::kDeviceScaleFile};
  for (const char* device : kJudgedDevices) files.push_back(*folder / "devices" / fmt::format("{}.json", device));
  const auto carried = fingerprint(files);
  if (!carried) return carried.error();
  return fmt::format("{} {}", *measured, *carried);
}

}  // namespace forerun
