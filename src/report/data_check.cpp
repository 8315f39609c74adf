#include "report/data_check.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string_view kind_text(DataProblem::Kind kind) {
  switch (kind) {
    case DataProblem::Kind::broken: return "broken";
    case DataProblem::Kind::torn: return "torn";
    case DataProblem::Kind::warning: break;
  }
  return "warning";
}

// A line of `data check --json`, begun: findings by kind, and last the result.
JsonWriter begin_finding(std::string_view kind) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.data.check/1").field("kind", kind);
  return json;
}

}  // namespace

std::string finding_text(const DataProblem& problem) {
  return (problem.kind == DataProblem::Kind::broken ? "" : "warning: ") + problem.error().message();
}

std::string finding_json(const DataProblem& problem) {
  return begin_finding(kind_text(problem.kind))
      .field("file", problem.file)
      .field("record", problem.line)
      .field("id", problem.id)
      .field("what", problem.what)
      .end_object()
      .take();
}

std::string unreadable_json(const Error& error) {
  return begin_finding("file").field("file", error.where).field("what", error.what).end_object().take();
}

std::string to_text(const DataCheck& check) {
  std::string text =
      fmt::format("{} iteration records and {} op samples are good, {} records are broken", grouped(check.runs),
                  grouped(check.samples), check.broken == 0 ? "no" : grouped(check.broken));
  if (check.torn > 0) text += fmt::format(", {} torn last lines were passed over", grouped(check.torn));
  if (check.unreadable > 0) text += fmt::format(", {} files could not be read to their end", grouped(check.unreadable));
  if (check.empty > 0) text += fmt::format(", {} files hold no records", grouped(check.empty));
  return text;
}

std::string to_json(const DataCheck& check) {
  return begin_finding("result")
      .field("files", check.files)
      .field("runs", check.runs)
      .field("samples", check.samples)
      .field("broken", check.broken)
      .field("torn", check.torn)
      .field("warnings", check.warnings)
      .field("unreadable", check.unreadable)
      .field("empty", check.empty)
      .end_object()
      .take();
}

std::string to_text(const MergeResult& result, const std::string& out) {
  std::string text =
      fmt::format("{}: {} iteration records and {} op samples", out, grouped(result.runs), grouped(result.samples));
  if (result.repeats > 0) text += fmt::format("; {} repeated ids were left out", grouped(result.repeats));
  if (result.replaced > 0) {
    text += fmt::format(", {} failures among them gave way to a success", grouped(result.replaced));
  }
  if (result.compacted > 0) text += fmt::format("; {} records were packed", grouped(result.compacted));
  if (result.broken > 0) text += fmt::format("; {} broken records are named above", grouped(result.broken));
  return text;
}

std::string to_json(const MergeResult& result, const std::string& out) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.data.merge/1")
      .field("out", out)
      .field("runs", result.runs)
      .field("samples", result.samples)
      .field("repeats", result.repeats)
      .field("replaced", result.replaced)
      .field("compacted", result.compacted)
      .field("torn", result.torn)
      .field("broken", result.broken);
  return json.end_object().take();
}

}  // namespace forerun
