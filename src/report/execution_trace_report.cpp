#include "report/execution_trace_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string megabytes_text(int64_t bytes) { return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6); }

void write_collectives(JsonWriter& json, const ExecutionSummary& summary) {
  json.begin_array();
  for (const ExecutionCollectiveRow& row : summary.collectives) {
    json.begin_object()
        .field("name", row.name)
        .field("count", row.count)
        .field("bytes", row.bytes)
        .field("largest", row.largest);
    if (row.group_size > 0) json.field("ranks", row.group_size);
    json.end_object();
  }
  json.end_array();
}

void write_ops(JsonWriter& json, const ExecutionSummary& summary, size_t top) {
  json.begin_array();
  for (size_t i = 0; i < std::min(top, summary.ops.size()); ++i) {
    const ExecutionOpRow& row = summary.ops[i];
    json.begin_object().field("name", row.name).field("count", row.count);
    if (row.time_us >= 0) json.field("time_us", row.time_us);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string to_text(const ExecutionSummary& summary, size_t top) {
  std::string text =
      fmt::format("{}\n  {}, schema {}\n  {} nodes on {} threads:", summary.file, summary.format,
                  summary.schema.empty() ? "not told" : summary.schema, grouped(summary.nodes), summary.threads);
  for (size_t i = 0; i < kNodeKinds; ++i) {
    if (summary.kinds[i] > 0)
      text += fmt::format(" {} {}", grouped(summary.kinds[i]), name_of(static_cast<NodeKind>(i)));
  }
  text += fmt::format("\n  {} control and {} data dependencies", grouped(summary.control), grouped(summary.data));
  if (summary.dangling > 0) text += fmt::format(", {} of them on nodes outside the file", grouped(summary.dangling));
  text += fmt::format("\n  {} nodes with shapes", grouped(summary.with_shapes));
  if (summary.gradients > 0) {
    text += fmt::format("\n  {} gradients, {}", grouped(summary.gradients), megabytes_text(summary.gradient_bytes));
  }
  if (summary.skipped > 0) {
    text += fmt::format("\n  {} nodes skipped; the first: {}", grouped(summary.skipped), summary.first_problem);
  }
  if (summary.truncated) text += "\n  the file ends within a node";
  text += "\n\n";
  if (summary.collectives.empty()) text += "No collectives\n";
  if (!summary.collectives.empty()) {
    Table table({"Collectives", "count", "bytes", "largest", "ranks"});
    for (const ExecutionCollectiveRow& row : summary.collectives) {
      table.add({row.name, grouped(row.count), megabytes_text(row.bytes), megabytes_text(row.largest),
                 row.group_size > 0 ? std::to_string(row.group_size) : "-"});
    }
    text += table.text();
  }
  const bool timed = !summary.ops.empty() && summary.ops.front().time_us >= 0;
  Table table(timed ? std::vector<std::string>{"Nodes", "count", "time"} : std::vector<std::string>{"Nodes", "count"});
  for (size_t i = 0; i < std::min(top, summary.ops.size()); ++i) {
    const ExecutionOpRow& row = summary.ops[i];
    std::vector<std::string> cells = {row.name, grouped(row.count)};
    if (timed)
      cells.push_back(row.time_us < 0 ? "-" : fmt::format("{:.3f} ms", static_cast<double>(row.time_us) / 1e3));
    table.add(cells);
  }
  return text + (top > 0 ? "\n" + table.text() : "");
}

std::string to_json(const ExecutionSummary& summary, size_t top) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.trace.execution/1")
      .field("file", summary.file)
      .field("format", summary.format)
      .field("file_schema", summary.schema)
      .field("nodes", summary.nodes)
      .key("kinds")
      .begin_object();
  for (size_t i = 0; i < kNodeKinds; ++i) json.field(name_of(static_cast<NodeKind>(i)), summary.kinds[i]);
  json.end_object()
      .field("threads", summary.threads)
      .field("control_dependencies", summary.control)
      .field("data_dependencies", summary.data)
      .field("dangling_dependencies", summary.dangling)
      .field("gradients", summary.gradients)
      .field("gradient_bytes", summary.gradient_bytes)
      .field("skipped", summary.skipped)
      .field("truncated", summary.truncated);
  write_collectives(json.key("collectives"), summary);
  write_ops(json.key("ops"), summary, top);
  return json.end_object().take();
}

std::string to_csv(const ExecutionTrace& trace) {
  std::string text = "id,kind,name,control,data,duration_us,input_shapes,output_shapes\n";
  const auto joined = [](std::span<const uint64_t> ids) {
    std::string list;
    for (const uint64_t id : ids) list += (list.empty() ? "" : " ") + std::to_string(id);
    return list;
  };
  const auto raw = [&](NameId id) { return csv_cell(id.valid() ? trace.names[id] : std::string()); };
  for (const ExecutionNode& node : trace.nodes) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", node.id, name_of(node.kind), csv_cell(trace.name(node)),
                        joined(trace.control_of(node)), joined(trace.data_of(node)),
                        node.duration_us < 0 ? "" : std::to_string(node.duration_us), raw(node.inputs.shapes),
                        raw(node.outputs.shapes));
  }
  return text;
}

}  // namespace forerun
