#include "records/machine_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/data_dir.h"
#include "base/json_writer.h"
#include "base/line_writer.h"
#include "base/statistics.h"
#include "cost/analytic/analytic.h"
#include "derive/work.h"

namespace forerun {
namespace {

constexpr double kMostOfPeak = 1.1;      // boosts and figures of datasheets differ by some percent
constexpr double kMostOfBandwidth = 12;  // operands may lie in the cache
constexpr double kLongUs = 20;           // below, the resolution of clocks counts
constexpr double kMostRepeat = 0.05;     // median difference of ops that were timed twice
constexpr double kMostSpread = 0.2;
constexpr const char* kFamilyOfNets = "calibration";  // of op records out of iterations
constexpr double kMostDrift = 0.5;  // of a kind of host reading, largest over smallest less one, in the median kind

// Faster than the GPU can be; empty: it is not.
std::string too_fast(const OpReading& reading, const OpWork& work, const Device& device) {
  if (reading.us < kLongUs) return "";
  const double seconds = reading.us * 1e-6;
  const double peak = device.rate(product_unit(work, reading.precision));
  const bool by_value = reading.op.find("_grouped_mm") != std::string::npos;  // its values say how much there is to do
  if (work.cls == OpClass::gemm && !by_value && peak > 0 && work.flops.value / seconds > kMostOfPeak * peak) {
    return fmt::format("{} in {:.1f} us is {:.0f} % of the peak rate of a {}", reading.op, reading.us,
                       100 * work.flops.value / seconds / peak, device.name);
  }
  const auto moved = static_cast<double>(work.read.value + work.written.value);
  if (work.cls == OpClass::elementwise && moved / seconds > kMostOfBandwidth * device.memory_bandwidth) {
    return fmt::format("{} in {:.1f} us moves {:.0f} times what the memory of a {} can", reading.op, reading.us,
                       moved / seconds / device.memory_bandwidth, device.name);
  }
  return "";
}

double median_drift(const std::vector<HostCalibration>& rounds) {
  std::vector<double> drifts;
  if (rounds.size() < 2) return 0;
  for (const auto& [kind, first] : rounds.front().forward) {
    double low = first;
    double high = first;
    for (const HostCalibration& round : rounds) {
      for (const auto& [name, us] : round.forward) {
        if (name != kind) continue;
        low = std::min(low, us);
        high = std::max(high, us);
      }
    }
    drifts.push_back(high / low - 1);
  }
  return drifts.empty() ? 0 : median(std::move(drifts));
}

void write_tensors(JsonWriter& json, std::string_view name, const std::vector<std::optional<ReadTensor>>& tensors) {
  json.key(name).begin_array();
  for (const auto& tensor : tensors) {
    if (!tensor) {
      json.value(nullptr);
      continue;
    }
    json.begin_array().value(name_of(tensor->dtype)).value(tensor->shape).value(tensor->strides).end_array();
  }
  json.end_array();
}

// All but its times: equal ops have equal text.
std::string described(const OpReading& reading) {
  JsonWriter json;
  json.begin_object().field("op", reading.op).field("precision", name_of(reading.precision));
  write_tensors(json, "inputs", reading.inputs);
  write_tensors(json, "outputs", reading.outputs);
  json.key("attributes").raw(reading.attributes.to_json());
  return json.field("within", reading.within).end_object().take();
}

std::string record_of(const OpReading& reading, const std::string& id) {
  JsonWriter json;
  json.begin_object().field("schema", "op/1").field("id", id).field("status", "ok").field("grid", "machine");
  if (reading.within) json.field("family", kFamilyOfNets);
  json.field("op", reading.op).field("precision", name_of(reading.precision));
  write_tensors(json, "inputs", reading.inputs);
  json.key("attributes").raw(reading.attributes.to_json());
  write_tensors(json, "outputs", reading.outputs);
  json.field("us", reading.span_us).field("spread", reading.spread).field("workspace", 0);
  json.key("kernels").begin_array().begin_array().value("").value(reading.us).value(reading.kernels);
  return json.end_array().end_array().end_object().take();
}

std::string environment_of(const MachineCard& card) {
  JsonWriter json;
  json.begin_object().field("schema", "env/1").field("gpu", card.gpu).field("torch", card.torch);
  json.field("cuda", card.cuda).field("cudnn", 0).field("driver", card.driver).field("cpu", card.cpu);
  return json.field("host", card.host).field("date", card.date).end_object().take();
}

Result<DeviceCatalogue> catalogue() {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  return load_devices(*folder / "devices");
}

}  // namespace

bool is_machine_file(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;  // what is looked at of a pipe is gone
  std::ifstream stream(file, std::ios::binary);
  std::string head(8192, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  std::erase_if(head, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return head.starts_with("{") && head.find("\"format\":\"machine/") != std::string::npos;
}

int64_t check_machine(const Machine& machine, const std::string& file, const DeviceCatalogue& devices,
                      const std::function<void(const DataProblem&)>& problem) {
  int64_t broken = 0;
  const auto tell = [&](DataProblem::Kind kind, int64_t line, std::string id, std::string what) {
    broken += kind == DataProblem::Kind::broken ? 1 : 0;
    problem({kind, file, line, std::move(id), std::move(what)});
  };
  if (const std::string missing = machine.card.missing(); !missing.empty()) {
    tell(DataProblem::Kind::broken, 1, "card", fmt::format("the card does not say {}", missing));
  }
  if (machine.device && machine.device->name != machine.card.gpu) {
    tell(DataProblem::Kind::broken, 1, "card", "the card names another GPU than the readings are of");
  }
  const Result<Device> device = devices.find(machine.device ? machine.device->name : "");
  std::vector<double> repeats;
  std::vector<double> spreads;
  for (size_t i = 0; i < machine.ops.size(); ++i) {
    const OpReading& reading = machine.ops[i];
    if (!reading.within) spreads.push_back(reading.spread);
    if (reading.again_us > 0) repeats.push_back(std::abs(std::log(reading.again_us / reading.span_us)));
    if (!device) continue;
    const Graph graph = graph_of({&reading});
    const std::string what = too_fast(reading, work_of(graph, graph.ops()[0]), *device);
    if (!what.empty()) tell(DataProblem::Kind::broken, static_cast<int64_t>(i + 1), "op", what);
  }
  if (machine.device && !device) {
    tell(DataProblem::Kind::warning, 1, "card",
         fmt::format("the catalogue has no {}: limits are not checked", machine.device->name));
  }
  if (!repeats.empty() && median(repeats) > kMostRepeat) {
    tell(DataProblem::Kind::warning, 1, "repeats",
         fmt::format("ops that were timed twice differ by {:.0f} %: was the GPU busy?", 100 * median(repeats)));
  }
  if (!spreads.empty() && median(spreads) > kMostSpread) {
    tell(DataProblem::Kind::warning, 1, "spread",
         fmt::format("repetitions of an op differ by {:.0f} %: was the GPU busy?", 100 * median(spreads)));
  }
  if (const double drift = median_drift(machine.host_cuda); drift > kMostDrift) {
    tell(DataProblem::Kind::warning, 1, "host",
         fmt::format("readings of the host drift by {:.0f} %: was it busy?", 100 * drift));
  }
  return broken;
}

Result<DataCheck> check_machines(const std::vector<std::string>& files,
                                 const std::function<void(const DataProblem&)>& problem,
                                 const std::function<void(const Error&)>& unreadable) {
  const Result<DeviceCatalogue> devices = catalogue();
  if (!devices) return devices.error();
  DataCheck check;
  for (const std::string& file : files) {
    ++check.files;
    const Result<Machine> machine = read_machine(file);
    if (!machine) {
      ++check.unreadable;
      unreadable(machine.error());
      continue;
    }
    const auto heard = [&](const DataProblem& found) {
      check.warnings += found.kind == DataProblem::Kind::warning ? 1 : 0;
      problem(found);
    };
    const int64_t broken = check_machine(*machine, file, *devices, heard);
    check.broken += broken;
    check.samples += std::max<int64_t>(0, static_cast<int64_t>(machine->ops.size()) - broken);
  }
  return check;
}

Result<MergeResult> merge_machines(const std::string& out, const std::vector<std::string>& files,
                                   const MergeOptions& options) {
  const Result<DeviceCatalogue> devices = catalogue();
  if (!devices) return devices.error();
  Result<LineWriter> writer = LineWriter::create(out, {.overwrite = options.overwrite});
  if (!writer) return writer.error();
  MergeResult result;
  std::set<std::string> seen;  // ops, by machine
  for (const std::string& file : files) {
    const Result<Machine> machine = read_machine(file);
    if (!machine) return machine.error();
    const auto heard = [&](const DataProblem& found) {
      if (options.problem) options.problem(found);
    };
    if (const int64_t broken = check_machine(*machine, file, *devices, heard); broken > 0) {
      result.broken += broken;
      continue;
    }
    if (Status written = writer->write(environment_of(machine->card)); !written.ok()) return written.error();
    for (const OpReading& reading : machine->ops) {
      const std::string name = machine->card.host + machine->card.gpu + described(reading);
      if (!seen.insert(name).second) {
        ++result.repeats;
        continue;
      }
      const std::string id = fmt::format("{}/{}", machine->card.host, result.samples);
      if (Status written = writer->write(record_of(reading, id)); !written.ok()) return written.error();
      ++result.samples;
    }
  }
  if (result.samples == 0) {
    return Error{"no file has ops that can be used", "", "check them with `forerun data check`"};
  }
  if (Status finished = writer->finish(); !finished.ok()) return finished.error();
  return result;
}

}  // namespace forerun
