#include "ingest/importers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/byte_source.h"
#include "base/check.h"
#include "ingest/chakra/execution_trace.h"
#include "ingest/onnx/message_size.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTelling = size_t{64} << 10;

bool has_any(const JsonOutline& json, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return json.has(key); });
}

bool is_record_schema(std::string_view schema) {
  return schema.starts_with("run/") || schema.starts_with("op/") || schema.starts_with("env/");
}

// {"schema": "run/2", ...}. Programs may strip the schema: what is left has an id or a family. Behind a broken first
// line others may be sound.
bool is_records(const FileBeginning& file) {
  if (file.json.is_object && is_record_schema(file.json.text("schema"))) return true;
  if (file.json.is_object && !file.json.fields.empty()) {
    return !file.json.has("schema") && has_any(file.json, {"id", "family"});
  }
  constexpr int kMostLines = 16;
  std::string_view rest = file.bytes;
  for (int line = 0; line < kMostLines; ++line) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
    if (rest.starts_with('{') && is_record_schema(json_outline(rest).text("schema"))) return true;
  }
  return false;
}

bool is_resource_records(const FileBeginning& file) {
  return file.json.is_object && file.json.text("schema").starts_with("resources/");
}

// {"schemaVersion": 1, "deviceProperties": [...], "traceEvents": [{"ph": "X", ...}, or the list of events alone. The
// part before the events can be longer than what is looked at.
bool is_profiler_trace(const FileBeginning& file) {
  if (file.json.is_list) return file.json.has("ph");
  return has_any(file.json,
                 {"traceEvents", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit"});
}

// {"schema": "1.0.1", "pid": 7, ..., "nodes": [...]}, or Chakra's messages.
bool is_execution_trace(const FileBeginning& file) {
  if (!file.json.is_object) return !file.json.is_list && looks_like_chakra(file.bytes);
  const std::string_view schema = file.json.text("schema");
  const bool version = !schema.empty() && schema[0] >= '0' && schema[0] <= '9';
  return version || (file.json.has("schema") && file.json.has("nodes"));
}

bool is_device(const FileBeginning& file) {
  const std::string_view format = file.json.is_object ? file.json.text("format") : "";
  return format.starts_with("device/") || format.starts_with("links/");
}

// {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "model_type": "llama", ...}
bool is_model_config(const FileBeginning& file) {
  return file.json.is_object &&
         has_any(file.json, {"model_type", "architectures", "transformers_version", "_diffusers_version"});
}

// The cells of a heading; none where the line is no text.
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t end = line.find(separator);
    std::string_view cell = line.substr(0, end);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"' || cell.back() == '\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

// A heading with a column that only tables of jobs have, or a line as Slurm or Gavel write them (docs/jobs.md).
bool is_job_table(const FileBeginning& file) {
  std::string_view text = file.bytes;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  if (line.find('\0') != std::string_view::npos) return false;
  if (line.starts_with("JobId=") && line.find(" JobState=") != std::string_view::npos) return true;
  constexpr size_t kGavelCells = 7, kGavelPairs = 10;
  const size_t tabs = cells_of(line, '\t').size();
  if (tabs == kGavelCells || tabs == kGavelPairs) return true;
  const auto cells = cells_of(line, line.find('|') == std::string_view::npos ? ',' : '|');
  const auto is = [&](std::string_view name) { return std::find(cells.begin(), cells.end(), name) != cells.end(); };
  const auto begins = [&](std::string_view start) {
    return std::any_of(cells.begin(), cells.end(), [&](std::string_view cell) { return cell.starts_with(start); });
  };
  if (cells.size() < 2) return false;
  return is("duration") || begins("duration_") || begins("step_ms") || (is("iterations") && is("model")) ||
         is("norm_job_submit_time") || is("batch_time_norm") || is("JobID") ||
         (is("application") && is("num_replicas")) || (is("creation_time") && is("num_gpu"));
}

bool is_onnx(const FileBeginning& file) {
  return !file.json.is_object && !file.json.is_list && ingest::looks_like_model(file.bytes);
}

const Importer* importer_of(FileKind kind) {
  for (const Importer& importer : importers()) {
    if (importer.kind == kind) return &importer;
  }
  return nullptr;
}

// "forerun trace, replay and whatif take it"
std::string takers(const std::vector<const char*>& verbs) {
  std::string text;
  for (size_t i = 0; i < verbs.size(); ++i) {
    if (i > 0) text += i + 1 == verbs.size() ? " and " : ", ";
    text += fmt::format("{}{}", i == 0 ? "forerun " : "", verbs[i]);
  }
  return text + (verbs.size() == 1 ? " takes it" : " take it");
}

// "taken here: a file of run records, an ONNX model or a name from `forerun zoo`", where the last is `also`
std::string taken_by(std::string_view verb, std::string_view also) {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) {
    if (takes(verb, importer.kind)) names.emplace_back(importer.name);
  }
  if (!also.empty()) names.emplace_back(also);
  if (names.empty()) return "";
  std::string text = "taken here: ";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

struct ReadBeginning {
  std::string bytes;           // fewer than asked for where the file ends or breaks before
  std::optional<Error> fault;  // what it breaks with
};

Result<ReadBeginning> beginning_of(const std::string& path) {
  auto source = ByteSource::open(path);
  if (!source) return source.error();
  ReadBeginning read{std::string(kTelling, '\0'), std::nullopt};
  size_t held = 0;
  while (held < kTelling) {
    const auto count = (*source)->read(read.bytes.data() + held, kTelling - held);
    if (!count) read.fault = count.error();
    if (!count || *count == 0) break;
    held += *count;
  }
  read.bytes.resize(held);
  return read;
}

}  // namespace

const std::vector<Importer>& importers() {
  using Kind = FileKind;
  static const std::vector<Importer> list = {
      {Kind::records,
       "a file of run records",
       {"predict", "fit", "compare", "sweep", "whatif", "scale", "data", "memory replay", "zoo check", "train", "eval"},
       "",
       {".jsonl", ".jsonl.gz", ".jsonl.zst"},
       is_records},
      {Kind::resource_records,
       "a file of resource records",
       {"train testbed", "eval --suite testbed"},
       "",
       {},
       is_resource_records},
      {Kind::device,
       "a device file",
       {"predict --device-file", "fit --device-file", "devices --device-file"},
       "",
       {},
       is_device},
      {Kind::profiler_trace,
       "a profiler trace",
       {"trace", "replay", "whatif"},
       "",
       {".json", ".json.gz", ".json.zst"},
       is_profiler_trace},
      {Kind::model_config,
       "a Hugging Face config.json",
       {"predict", "fit", "compare", "sweep", "whatif", "scale"},
       "",
       {},
       is_model_config},
      {Kind::onnx_model, "an ONNX model", {"predict", "fit", "compare", "sweep", "whatif", "scale"}, "", {}, is_onnx},
      {Kind::execution_trace,
       "an execution trace",
       {"trace"},
       "",
       {".json", ".json.gz", ".json.zst"},
       is_execution_trace},
      {Kind::job_table, "a table of jobs", {"schedule"}, "", {}, is_job_table},
  };
  return list;
}

FileKind sniff(std::string_view beginning) {
  const FileBeginning file{beginning, json_outline(beginning)};
  for (const Importer& importer : importers()) {
    if (importer.sniff(file)) return importer.kind;
  }
  const bool blank = beginning.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return blank ? FileKind::empty : FileKind::unknown;
}

Result<FileKind> sniff_file(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) return Error{"there is no such file or folder", path, "check the path"};
  if (fs::is_directory(status)) return FileKind::folder;
  if (!fs::is_regular_file(status)) return FileKind::stream;
  const auto beginning = beginning_of(path);
  if (!beginning) return beginning.error();
  const FileKind kind = sniff(beginning->bytes);
  if (!is_told(kind) && beginning->fault) return *beginning->fault;
  return kind;
}

bool takes(std::string_view verb, FileKind kind) {
  const Importer* importer = importer_of(kind);
  return importer != nullptr &&
         std::find(importer->verbs.begin(), importer->verbs.end(), verb) != importer->verbs.end();
}

Error refused_file(FileKind kind, const std::string& path, std::string_view verb, std::string_view also) {
  const std::string taken = taken_by(verb, also);
  switch (kind) {
    case FileKind::folder: return {"is a folder", path, taken};
    case FileKind::stream: return {"is no regular file: it can be read only once", path, "write it to a file first"};
    case FileKind::empty: return {"the file is empty", path, taken};
    case FileKind::unknown: return {"is no kind of file that Forerun reads", path, taken};
    default: break;
  }
  const Importer* importer = importer_of(kind);
  CHECK(importer != nullptr, "a kind of file that is not in the list");
  const std::string remedy = importer->verbs.empty() ? importer->otherwise : takers(importer->verbs);
  return {fmt::format("is {}", importer->name), path, taken.empty() ? remedy : remedy + "; " + taken};
}

Result<FileKind> file_for(std::string_view verb, const std::string& path) {
  const auto kind = sniff_file(path);
  if (!kind) return kind;
  if (!is_told(*kind) || takes(verb, *kind)) return kind;
  return refused_file(*kind, path, verb);
}

Result<std::vector<std::string>> files_below(const std::string& folder, FileKind kind) {
  const Importer* importer = importer_of(kind);
  CHECK(importer != nullptr && !importer->in_folders.empty(), "a kind of file that is not looked for in folders");
  const auto counts = [&](const std::string& name) {
    return std::any_of(importer->in_folders.begin(), importer->in_folders.end(),
                       [&](const char* ending) { return name.ends_with(ending); });
  };
  std::vector<std::string> found;
  std::error_code code;
  for (fs::recursive_directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    std::error_code gone;
    if (entry->is_regular_file(gone) && counts(entry->path().filename().string())) {
      found.push_back(entry->path().string());
    }
  }
  if (code) return Error{fmt::format("cannot be listed: {}", code.message()), folder, "check its permissions"};
  if (found.empty()) {
    std::string endings;
    for (const char* ending : importer->in_folders)
      endings += fmt::format("{}*{}", endings.empty() ? "" : ", ", ending);
    return Error{fmt::format("holds no file that is named like {}", importer->name), folder,
                 fmt::format("such are {}; name other files one by one", endings)};
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace forerun
