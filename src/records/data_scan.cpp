#include "records/data_scan.h"

#include <fmt/format.h>

#include "base/line_reader.h"
#include "ingest/capture/record_head.h"

namespace forerun {
namespace {

class FileScan {
 public:
  FileScan(LineReader lines, Fields fields, const DataHandlers& handlers, Work& work)
      : lines_(std::move(lines)), fields_(fields), handlers_(handlers), work_(work) {}

  Status run() {
    while (true) {
      auto line = lines_.next();
      if (!line) return line.error();
      if (!line->has_value()) return {};
      if (is_blank(**line)) continue;
      take(**line);
      if (Status status = work_.advance(); !status.ok()) return status;
    }
  }

 private:
  void take(std::string_view line) {
    switch (heads_.kind(line)) {
      case RecordKind::run: return take_run(line);
      case RecordKind::sample: return take_sample(line);
      case RecordKind::environment:
        if (auto read = samples_.decode_environment(line); !read) problem(line, read.error(), "");
        return;
      case RecordKind::other: return take_other(line);
    }
  }

  void take_run(std::string_view line) {
    if (!handlers_.run) return;
    auto record = runs_.decode(line, fields_);
    if (!record) return problem(line, record.error(), runs_.id());
    if (record->run.id.empty()) record->run.id = fmt::format("record {}", lines_.line_number());
    handlers_.run(*record, {lines_.name(), lines_.line_number()});
  }

  void take_sample(std::string_view line) {
    if (!handlers_.sample) return;
    const auto sample = samples_.decode(line);
    if (!sample) return problem(line, sample.error(), samples_.id());
    handlers_.sample(*sample, {lines_.name(), lines_.line_number()});
  }

  void take_other(std::string_view line) {
    const auto head = heads_.read(line);
    if (!head) return problem(line, head.error(), "");
    const std::string id(head->id);
    problem(line,
            {fmt::format("schema is \"{}\"; known: run/1, run/2, run/3, op/1, env/1", head->schema.substr(0, 60))}, id);
  }

  void problem(std::string_view line, const Error& error, const std::string& id) {
    const bool torn = is_torn(line, lines_.line_ended()) && !heads_.read(line).ok();
    handlers_.problem({torn ? DataProblem::Kind::torn : DataProblem::Kind::broken, lines_.name(), lines_.line_number(),
                       id, torn ? kTornLine : error.what});
  }

  LineReader lines_;
  Fields fields_;
  const DataHandlers& handlers_;
  Work& work_;
  RecordHeadReader heads_;
  RunDecoder runs_;
  OpSampleDecoder samples_;
};

}  // namespace

bool is_torn(std::string_view line, bool ended) {
  const size_t begin = line.find_first_not_of(" \t");
  return !ended && begin != std::string_view::npos && (line[begin] == '{' || line[begin] == '\0');
}

Error DataProblem::error() const {
  std::string where = fmt::format("{}, record {}", file, line);
  if (!id.empty()) where += fmt::format(" ({})", id);
  return {what, where, kind == Kind::broken ? kBrokenRecordRemedy : ""};
}

Status scan_file(const std::string& file, Fields fields, const DataHandlers& handlers, Work& work) {
  auto lines = LineReader::open(file);
  if (!lines) return lines.error();
  return FileScan(std::move(*lines), fields, handlers, work).run();
}

Status scan_files(const std::vector<std::string>& files, Fields fields, const DataHandlers& handlers, Work& work) {
  for (const std::string& file : files) {
    if (Status status = scan_file(file, fields, handlers, work); !status.ok()) return status;
  }
  return {};
}

Status scan_files(const std::vector<std::string>& files, Fields fields, const DataHandlers& handlers,
                  const WorkControl& control) {
  Work work(control, "records");
  return scan_files(files, fields, handlers, work);
}

}  // namespace forerun
