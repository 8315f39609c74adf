// Gavel's traces: a job a line, parted by tabs, with the number of training steps; how long they take stands in a second
// file, the throughputs measured on each GPU type (steps a second).
//
//   simulated traces: type, command, argument, needs data, steps, arrival, GPUs
//   physical traces:  type, command, folder, argument, needs data, steps, GPUs, priority weight, SLO, arrival
//
// Real: job types and throughputs; arrivals and GPUs of the simulated traces (they follow Philly). Steps were drawn by
// the authors. Where a type was not measured at a gang's size, the steps a second of one GPU are taken. An SLO is a
// multiple of the job's own duration on its fastest type. The throughputs are looked for beside the trace and in the
// folder above (simulation_throughputs.json.gz), or named by --throughputs. It has speeds of pairs on one GPU too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

constexpr const char* kGavelRemedy = "correct the row, or pass --lenient to leave such rows out";

class Throughputs {
 public:
  // {"k80": {"('A3C', 1)": {"null": steps a second, "('LM (batch size 5)', 1)": [its, the other's]}}}
  static Result<Throughputs> parse(const std::string& text, const std::string& name) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return Error{"no JSON object of throughputs", name, "name Gavel's file by --throughputs"};
    Throughputs read;
    for (const auto& [type, rows] : json.items()) {
      if (type.ends_with("_unconsolidated") || !rows.is_object()) continue;
      for (const auto& [key, cells] : rows.items()) {
        if (!cells.is_object() || !cells.contains("null") || !cells["null"].is_number()) continue;
        read.rates_[key][type] = cells["null"].get<double>();
        for (const auto& [other, pair] : cells.items()) {
          const bool sound = pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
          if (sound) read.pairs_[{type, key, other}] = {pair[0].get<double>(), pair[1].get<double>()};
        }
      }
      read.types_.push_back(type);
    }
    if (read.types_.empty()) return Error{"it has no GPU types", name, "name Gavel's file by --throughputs"};
    return read;
  }

  [[nodiscard]] const std::vector<std::string>& types() const { return types_; }

  // Steps a second on every type, 0 where it cannot run; nothing where the job type was not measured at all.
  [[nodiscard]] std::optional<std::vector<double>> of(const std::string& kind, int64_t gpus) const {
    auto found = rates_.find(fmt::format("('{}', {})", kind, gpus));
    if (found == rates_.end()) found = rates_.find(fmt::format("('{}', 1)", kind));
    if (found == rates_.end()) return std::nullopt;
    std::vector<double> rates;
    for (const std::string& type : types_) {
      const auto rate = found->second.find(type);
      rates.push_back(rate == found->second.end() || !std::isfinite(rate->second) ? 0 : rate->second);
    }
    return rates;
  }

  // How fast two single-GPU jobs run on one GPU, against alone.
  [[nodiscard]] PackingModel packing(const std::vector<std::string>& kinds,
                                     const std::vector<std::string>& types) const {
    PackingModel model;
    for (size_t type = 0; type < types.size(); ++type) {
      for (size_t a = 0; a < kinds.size(); ++a) {
        for (size_t b = 0; b < kinds.size(); ++b) {
          const auto found = pairs_.find({types[type], single(kinds[a]), single(kinds[b])});
          const double alone_a = rate(kinds[a], types[type]);
          const double alone_b = rate(kinds[b], types[type]);
          if (found == pairs_.end() || !(alone_a > 0 && alone_b > 0)) continue;
          const auto [speed_a, speed_b] = found->second;
          if (!(speed_a > 0 && speed_b > 0)) continue;  // they do not fit together
          model.add(static_cast<int32_t>(a), static_cast<int32_t>(b), static_cast<uint32_t>(type),
                    std::min(speed_a / alone_a, 1.0), std::min(speed_b / alone_b, 1.0));
        }
      }
    }
    return model;
  }

 private:
  static std::string single(const std::string& kind) { return fmt::format("('{}', 1)", kind); }
  [[nodiscard]] double rate(const std::string& kind, const std::string& type) const {
    const auto row = rates_.find(single(kind));
    if (row == rates_.end()) return 0;
    const auto cell = row->second.find(type);
    return cell == row->second.end() ? 0 : cell->second;
  }

  std::vector<std::string> types_;
  std::map<std::string, std::map<std::string, double>> rates_;
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<double, double>> pairs_;  // type, job, other
};

std::string find_throughputs(const std::string& trace) {
  const std::filesystem::path folder = std::filesystem::absolute(trace).parent_path();
  for (const auto& place : {folder, folder.parent_path()}) {
    for (const char* name : {"simulation_throughputs.json.gz", "simulation_throughputs.json"}) {
      std::error_code ignored;
      if (std::filesystem::exists(place / name, ignored)) return (place / name).string();
    }
  }
  return "";
}

Status add_gavel_row(const CsvRows& rows, const Throughputs& throughputs, JobCollector& jobs) {
  const bool physical = rows.size() == 10;
  if (!physical && rows.size() != 7) {
    return jobs.reject(Fault::malformed, rows.line(), fmt::format("{} cells, not 7 or 10", rows.size()), kGavelRemedy);
  }
  const auto steps = parse_number(rows.cell(physical ? 5 : 4));
  const auto gpus = parse_integer(rows.cell(6));
  const auto arrival = parse_seconds(rows.cell(physical ? 9 : 5));
  const auto slo = physical ? parse_number(rows.cell(8)) : std::optional<double>(-1);
  const bool sound = steps && *steps > 0 && gpus && *gpus >= 1 && *gpus <= 1'000'000 && arrival && slo;
  if (!sound) return jobs.reject(Fault::malformed, rows.line(), "steps, GPUs or arrival are no numbers", kGavelRemedy);
  const auto rates = throughputs.of(rows.cell(0), *gpus);
  if (!rates) {
    return jobs.reject(Fault::no_duration, rows.line(),
                       fmt::format("no throughput was measured for '{}'", rows.cell(0)), kGavelRemedy);
  }
  JobRow row;
  row.id = std::to_string(rows.line());
  row.kind = rows.cell(0);
  row.job.arrival = *arrival;
  row.job.gpus = static_cast<int32_t>(*gpus);
  Time fastest = kNever;
  for (const double rate : *rates) {
    const Time duration = rate > 0 ? time_from_seconds(*steps / rate) : kNever;
    row.durations.push_back(duration);
    fastest = std::min(fastest, duration);
  }
  if (*slo > 0 && fastest != kNever) row.job.deadline = later(*arrival, time_from_seconds(seconds(fastest) * *slo));
  return jobs.add(std::move(row), rows.line());
}

}  // namespace

Result<LoadedJobs> load_gavel(LineReader reader, const LoadOptions& options) {
  const std::string file = options.companion.empty() ? find_throughputs(reader.name()) : options.companion;
  if (file.empty()) {
    return Error{"the throughputs that give steps their time are not beside the trace", reader.name(),
                 "name Gavel's simulation_throughputs.json.gz by --throughputs"};
  }
  const auto text = read_whole(file);
  if (!text) return text.error();
  return load_gavel_with(std::move(reader), *text, file, options);
}

Result<LoadedJobs> load_gavel_with(LineReader reader, const std::string& throughputs, const std::string& name,
                                   const LoadOptions& options) {
  const auto table = Throughputs::parse(throughputs, name);
  if (!table) return table.error();
  CsvRows rows(std::move(reader), '\t', false);
  JobCollector jobs(rows.name(), options, table->types());
  jobs.allow_duplicates();  // they are called by their line
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_gavel_row(rows, *table, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (loaded) {
    loaded->workload.packing =
        std::make_shared<PackingModel>(table->packing(loaded->workload.kinds, loaded->workload.gpu_types));
    loaded->real = {"job type", "throughput by GPU type, alone and in pairs", "submission", "GPUs"};
    loaded->made = {"steps: drawn by the trace's authors", "throughput of gangs that were not measured: of one GPU"};
  }
  return loaded;
}

}  // namespace forerun::cluster
