#include "ingest/capture/record_columns.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, kRecordFields> kFieldNames = {
    "schema",     "id",         "backend",       "family",       "args",       "input",    "run",      "env",
    "host_us",    "params",     "param_tensors", "warnings",     "assumed",    "op_names", "modules",  "dtypes",
    "shapes",     "attributes", "nodes",         "tensors",      "ops",        "storages", "frees",    "roots",
    "parametric", "dynamo",     "status",        "error",        "tried",      "mem",      "mem_init", "base_allocated",
    "time_ms",    "kernels",    "profile",       "kernel_names", "alloc_trace"};

constexpr std::array<std::pair<RunStatus, std::string_view>, 3> kStatuses = {
    {{RunStatus::ok, "ok"}, {RunStatus::oom, "oom"}, {RunStatus::failed, "failed"}}};

}  // namespace

std::string_view name_of(RecordField field) { return kFieldNames[static_cast<size_t>(field)]; }

std::optional<RecordField> record_field_named(std::string_view name) {
  for (size_t i = 0; i < kRecordFields; ++i) {
    if (kFieldNames[i] == name) return static_cast<RecordField>(i);
  }
  return std::nullopt;
}

bool is_wanted(RecordField field, Fields fields) {
  switch (fields) {
    case Fields::inputs: return field < RecordField::status;
    case Fields::inputs_and_measurements: return field < RecordField::kernel_names;
    case Fields::description:
      return field < RecordField::op_names || (field >= RecordField::status && field < RecordField::kernel_names);
    case Fields::everything: return true;
  }
  return true;
}

std::string_view name_of(RunStatus status) { return kStatuses[static_cast<size_t>(status)].second; }

std::optional<RunStatus> run_status_named(std::string_view name) {
  for (const auto& [status, known] : kStatuses) {
    if (known == name) return status;
  }
  return std::nullopt;
}

void RecordColumns::clear() {
  seen = 0;
  id.clear();
  family.clear();
  arguments = "{}";
  backend = Backend::cuda;
  input = {};
  setup = {};
  environment = {};
  parameter_count = parameter_tensors = 0;
  for (auto* table : {&op_names, &modules, &warnings, &assumed, &attributes}) table->clear();
  ops.clear();
  operands.clear();
  tensors.clear();
  shapes.clear();
  extents.clear();
  storages.clear();
  frees.clear();
  roots.clear();
  forms = {};
  dynamo = {};
  pieces.clear();
  kernels.clear();
  has_launches = false;
  kernel_name_count = 0;
  measured = {};
  trace.events.clear();
  trace.marks.clear();
  trace.address_base.reset();
}

}  // namespace forerun
