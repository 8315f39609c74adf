#include "api/trace.h"

#include <algorithm>
#include <filesystem>

#include "ingest/kineto/kineto_reader.h"

namespace forerun {

Result<std::vector<TraceFile>> trace_files(const std::vector<std::string>& paths, std::string_view verb) {
  std::vector<TraceFile> files;
  for (const std::string& path : paths) {
    const auto kind = sniff_file(path);
    std::error_code none;
    if (!kind && !std::filesystem::exists(path, none)) return kind.error();
    const FileKind told = kind ? *kind : FileKind::unknown;  // what cannot be unpacked is reported where it is read
    if (is_told(told) && !takes(verb, told)) return refused_file(told, path, verb);
    if (told != FileKind::folder) {
      files.push_back({path, told});
      continue;
    }
    const auto found = files_below(path, FileKind::profiler_trace);
    if (!found) return found.error();
    for (const std::string& file : *found) {
      const auto below = sniff_file(file);
      files.push_back({file, below ? *below : FileKind::unknown});
    }
  }
  return files;
}

Result<Trace> read_profiler_trace(const std::string& path, std::string_view verb, const WorkControl& control) {
  const auto kind = file_for(verb, path);
  if (!kind) return kind.error();
  if (is_told(*kind) && *kind != FileKind::profiler_trace) return refused_file(*kind, path, verb);
  Work work(control, "bytes of " + path);
  KinetoOptions options;
  options.work = &work;
  return read_kineto(path, options);
}

Result<std::vector<Trace>> read_traces(const std::vector<TraceFile>& files, bool partial, const WorkControl& control) {
  std::vector<Trace> traces;
  Work work(control);
  for (const TraceFile& file : files) {
    KinetoOptions options;
    options.partial = partial;
    options.work = &work;
    work.begin("bytes of " + file.path);
    auto trace = read_kineto(file.path, options);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  const bool told = std::all_of(traces.begin(), traces.end(), [](const Trace& trace) { return trace.rank >= 0; });
  if (told) {
    std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  }
  return traces;
}

Result<bool> are_execution_traces(const std::vector<TraceFile>& files) {
  const auto is = [](const TraceFile& file) { return file.kind == FileKind::execution_trace; };
  const auto found = std::find_if(files.begin(), files.end(), is);
  const auto other = std::find_if_not(files.begin(), files.end(), is);
  if (found == files.end() || other == files.end()) return found != files.end();
  return Error{"an execution trace beside a profiler trace", found->path + " and " + other->path,
               "name files of one kind at a time"};
}

}  // namespace forerun
