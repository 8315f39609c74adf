#include "api/trace.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ingest/chakra/execution_trace.h"
#include "ingest/kineto/kineto_reader.h"

namespace forerun {
namespace {

bool is_trace_name(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".json.zst");
}

Status add_folder(const std::string& folder, std::vector<std::string>& files) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<std::string> found;
  for (auto entry = fs::recursive_directory_iterator(folder, code); !code && entry != fs::end(entry);
       entry.increment(code)) {
    if (entry->is_regular_file() && is_trace_name(entry->path().filename().string())) {
      found.push_back(entry->path().string());
    }
  }
  if (code) return Error{"cannot be listed: " + code.message(), folder, "check its permissions"};
  if (found.empty()) return Error{"has no traces", folder, "put *.json, *.json.gz or *.json.zst in it, or name files"};
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
  return {};
}

}  // namespace

Result<std::vector<std::string>> trace_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (std::filesystem::is_directory(path, code)) {
      if (Status status = add_folder(path, files); !status) return status.error();
    } else if (!std::filesystem::exists(path, code)) {
      return Error{"there is no such file or folder", path, "check the path"};
    } else {
      files.push_back(path);
    }
  }
  return files;
}

Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths, const TraceProgress& progress,
                                       bool partial) {
  const auto files = trace_files(paths);
  if (!files) return files.error();
  std::vector<Trace> traces;
  for (const std::string& file : *files) {
    KinetoOptions options;
    options.partial = partial;
    if (progress) options.progress = [&](int64_t bytes) { progress(file, bytes); };
    auto trace = read_kineto(file, options);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  const bool told = std::all_of(traces.begin(), traces.end(), [](const Trace& trace) { return trace.rank >= 0; });
  if (told) {
    std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  }
  return traces;
}

Result<std::vector<std::string>> execution_traces(const std::vector<std::string>& paths) {
  const auto files = trace_files(paths);
  if (!files) return files.error();
  std::vector<std::string> found;
  std::string other;
  for (const std::string& file : *files) {
    // A pipe can be read once: it is taken for a profiler trace.
    std::error_code code;
    const auto is = std::filesystem::is_regular_file(file, code) ? is_execution_trace(file) : Result<bool>(false);
    if (!is) return is.error();
    if (*is) {
      found.push_back(file);
    } else {
      other = file;
    }
  }
  if (!found.empty() && !other.empty()) {
    return Error{"an execution trace beside a profiler trace", found.front() + " and " + other,
                 "name files of one kind at a time"};
  }
  return found;
}

}  // namespace forerun
