#include "cluster/sources/step_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/csv_rows.h"
#include "cluster/machine.h"
#include "cluster/sources/cell_values.h"

namespace forerun::cluster {
namespace {

struct Placement {
  int32_t gpus = 0, nodes = 0;
};

// "31": three GPUs on one node and one on another.
std::optional<Placement> parse_placement(const std::string& text) {
  Placement placement;
  for (const char c : text) {
    if (c < '1' || c > '9' || placement.gpus > 100'000) return std::nullopt;
    placement.gpus += c - '0';
    ++placement.nodes;
  }
  return placement.gpus == 0 ? std::nullopt : std::optional(placement);
}

std::optional<Placement> placement_of(const CsvRows& rows) {
  if (const auto placement = rows.column("placement")) return parse_placement(rows.cell(placement));
  const auto nodes = parse_integer(rows.cell(rows.column("num_nodes")));
  const auto gpus = parse_integer(rows.cell(rows.column("num_replicas")));
  if (!nodes || !gpus || *nodes < 1 || *gpus < *nodes || *gpus > 100'000) return std::nullopt;
  return Placement{static_cast<int32_t>(*gpus), static_cast<int32_t>(*nodes)};
}

Status add_times(const TarMember& member, SpeedTable& table) {
  CsvRows rows(LineReader::from_text(member.text, member.name), ',');
  if (Status status = rows.begin(); !status) return status;
  const auto batch = rows.need("local_bsz");
  const auto step = rows.need("step_time");
  const auto sync = rows.need("sync_time");
  for (const auto* column : {&batch, &step, &sync}) {
    if (!*column) return column->error();
  }
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) return {};
    const auto place = placement_of(rows);
    const auto local = parse_number(rows.cell(*batch));
    const auto seconds = parse_number(rows.cell(*step));
    const auto communication = parse_number(rows.cell(*sync));
    if (!place || !local || !(*local >= 1) || !seconds || !(*seconds > 0 && *seconds < 1e6) || !communication) {
      return Error{"no step time: placement, batch or seconds cannot be read",
                   fmt::format("{}:{}", member.name, rows.line()),
                   "name Pollux' step_times.tar.gz or Titan's fminfo.tar.gz by --throughputs"};
    }
    table.add(place->gpus, place->nodes, *local, *seconds, *communication);
  }
}

// The application and GPU type that a file of the archive is about; nothing: it is about something else.
std::optional<std::pair<std::string, std::string>> subject_of(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.extension() != ".csv") return std::nullopt;
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  for (const std::string part : {"placements", "scalability"}) {
    if (stem == part) return std::pair(folder, std::string("t4"));
    if (stem.ends_with("_" + part)) {
      return std::pair(stem.substr(0, stem.size() - part.size() - 1), canonical_type(folder));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<StepTables> StepTables::read(const std::vector<TarMember>& members, const std::string& name) {
  StepTables read;
  for (const TarMember& member : members) {
    const auto subject = subject_of(member.name);
    if (!subject) continue;
    if (Status status = add_times(member, read.tables_[*subject]); !status) return status.error().within(name);
    if (std::find(read.types_.begin(), read.types_.end(), subject->second) == read.types_.end()) {
      read.types_.push_back(subject->second);
    }
  }
  if (read.tables_.empty()) {
    return Error{"the archive holds no step times", name,
                 "name Pollux' step_times.tar.gz or Titan's fminfo.tar.gz by --throughputs"};
  }
  for (auto& [subject, table] : read.tables_) table.finish();
  return read;
}

void StepTables::limit_batch(const std::string& application, double local_batch) {
  for (auto& [subject, table] : tables_) {
    if (subject.first == application) table.drop_batches_above(local_batch);
  }
}

const SpeedTable* StepTables::find(const std::string& application, const std::string& type) const {
  const auto found = tables_.find({application, type});
  return found == tables_.end() ? nullptr : &found->second;
}

std::vector<std::string> StepTables::applications() const {
  std::vector<std::string> names;
  for (const auto& [subject, table] : tables_) {
    if (names.empty() || names.back() != subject.first) names.push_back(subject.first);
  }
  return names;
}

SpeedModel StepTables::speeds(const std::vector<std::string>& kinds, const std::vector<std::string>& types,
                              std::vector<double> batch) const {
  SpeedModel model;
  model.batch = std::move(batch);
  model.gpus_per_node = kMeasuredGpusPerNode;
  for (const std::string& kind : kinds) {
    std::vector<SpeedTable>& tables = model.tables.emplace_back();
    for (const std::string& type : types) {
      const SpeedTable* table = find(kind, type);
      tables.push_back(table == nullptr ? SpeedTable() : *table);
    }
  }
  return model;
}

}  // namespace forerun::cluster
