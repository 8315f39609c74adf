#include "lab/training_data/other_gpu_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/provenance.h"
#include "device/catalogue.h"
#include "lab/training_data/measured_ops.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

// One folder for each version of PyTorch, one file for each GPU; those beside them hold the same once more.
std::vector<std::string> latency_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(folder, code)) {
    if (entry.path().extension() == ".csv" && entry.path().parent_path().filename().string().starts_with("p2"))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

size_t place_of(const Device& device, std::vector<Device>& devices) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const Device& known) { return known.name == device.name; });
  if (found != devices.end()) return static_cast<size_t>(found - devices.begin());
  devices.push_back(learn::without_tf32(device));
  return devices.size() - 1;
}

void add_row(const OpLatency& latency, size_t gpu, learn::TimedWorkTable& table) {
  const Graph graph = graph_of(latency.sample);
  const auto work = learn::gpu_work(graph, graph.ops()[0], Precision::fp32);
  if (work.size() != 1) return;
  learn::TimedWork row{.gpu = gpu, .op = latency.sample.op, .work = work.front(), .us = latency.sample.us};
  row.tile = learn::tile_in_name(latency.kernel);
  if (latency.blocks > 0 && latency.threads > 0) {
    row.launch = {.blocks = static_cast<double>(latency.blocks), .threads = latency.threads};
  }
  table.rows.push_back(row);
}

}  // namespace

Result<learn::TimedWorkTable> load_other_gpu_tables(const std::string& folder, const DeviceCatalogue& devices,
                                                    const WorkControl& control) {
  const std::vector<std::string> files = latency_files(folder);
  if (files.empty()) {
    return Error{"NeuSight's op latencies are not there", folder,
                 "unpack them (tar -xJf op_latency_train.tar.xz -C FOLDER) and name the folder with --data"};
  }
  Work work(control, "tables read", static_cast<int64_t>(files.size()));
  learn::TimedWorkTable table;
  for (const std::string& file : files) {
    if (const Status status = work.advance(); !status.ok()) return status.error();
    const auto latencies = read_op_latencies(file);
    if (!latencies) return latencies.error();
    for (const OpLatency& latency : *latencies) {
      const auto device = devices.find(latency.gpu);
      if (!device) return device.error().within(file);
      add_row(latency, place_of(*device, table.devices), table);
    }
  }
  const auto tables = fingerprint({files.begin(), files.end()});
  if (!tables) return tables.error();
  table.source = fmt::format("NeuSight's op latencies: {} ops on {} GPUs, fingerprint {}", table.rows.size(),
                             table.devices.size(), *tables);
  return table;
}

}  // namespace forerun
