#include "predict/carried_models.h"

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/provenance.h"
#include "predict/cost_models.h"

namespace forerun {

Result<std::string> carried_models_fingerprint() {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto measured = cost_models_fingerprint();
  if (!measured) return measured.error();
  const auto carried = fingerprint({*folder / hybrid::kDeviceScaleFile, *folder / "devices"});
  if (!carried) return carried.error();
  return fmt::format("{} {}", *measured, *carried);
}

}  // namespace forerun
