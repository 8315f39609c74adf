#include "lab/cli/measured_files.h"

#include "base/data_dir.h"
#include "records/data_files.h"

namespace forerun::cli {

Result<std::vector<std::string>> measured_files(const std::vector<std::string>& paths) {
  if (!paths.empty()) return record_files(paths);
  const auto folder = data_dir();
  if (!folder) return folder.error();
  return record_files({(*folder / "h200").string()});
}

}  // namespace forerun::cli
