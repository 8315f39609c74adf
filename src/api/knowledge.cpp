#include "api/knowledge.h"

#include "base/data_dir.h"

namespace forerun {

Result<Knowledge> load_knowledge(const std::vector<std::string>& device_files) {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  Result<DeviceCatalogue> devices = load_devices(*folder / "devices");
  if (!devices) return devices.error();
  for (const std::string& file : device_files) {
    if (const Status status = devices->add_file(file); !status.ok()) return status.error();
  }
  Result<AnalyticConstants> analytic = load_analytic_constants(*folder / "cost" / "analytic.json");
  if (!analytic) return analytic.error();
  const Result<HostConstants> host = load_host_constants(*folder / "host" / "default.json");
  if (!host) return host.error();
  return Knowledge{std::move(*devices), std::move(*analytic), *host};
}

}  // namespace forerun
