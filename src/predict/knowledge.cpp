#include "predict/knowledge.h"

#include "base/data_dir.h"

namespace forerun {

Result<Knowledge> load_knowledge(const std::vector<std::string>& device_files, Trees trees) {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  Result<DeviceCatalogue> devices = load_devices(*folder / "devices");
  if (!devices) return devices.error();
  for (const std::string& file : device_files) {
    if (const Status status = devices->add_file(file); !status.ok()) return status.error();
  }
  Result<AnalyticConstants> analytic = load_analytic_constants(*folder / "cost" / "analytic.json");
  if (!analytic) return analytic.error();
  const Result<HostConstants> host = load_host_constants(*folder / kHostFile);
  if (!host) return host.error();
  Result<WorkspaceTable> workspaces = WorkspaceTable::load(*folder / "memory" / "workspaces.json");
  if (!workspaces) return workspaces.error();
  std::optional<hybrid::Corrector> corrector;
  if (const std::filesystem::path file = *folder / hybrid::kHybridFile;
      trees == Trees::with && std::filesystem::exists(file)) {
    Result<hybrid::Corrector> loaded = hybrid::load_corrector(file);
    if (!loaded) return loaded.error();
    corrector = std::move(*loaded);
  }
  Result<hybrid::DeviceScale> scale = hybrid::load_device_scale(*folder / hybrid::kDeviceScaleFile);
  if (!scale) return scale.error();
  scale->set_boards(*devices);
  const Result<Spread> spread = load_spread(*folder / kSpreadFile);
  if (!spread) return spread.error();
  MemorySpread memory_spread;
  if (const std::filesystem::path file = *folder / kMemorySpreadFile; std::filesystem::exists(file)) {
    const Result<MemorySpread> loaded = load_memory_spread(file);
    if (!loaded) return loaded.error();
    memory_spread = *loaded;
  }
  return Knowledge{std::move(*devices),    std::move(*analytic), *host,
                   std::move(corrector),   std::move(*scale),    *spread,
                   std::move(*workspaces), memory_spread};
}

}  // namespace forerun
