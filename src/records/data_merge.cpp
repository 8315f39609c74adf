#include "records/data_merge.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "base/line_reader.h"
#include "base/line_writer.h"
#include "ingest/capture/record_compactor.h"
#include "ingest/capture/record_head.h"
#include "records/data_check.h"
#include "records/data_files.h"

namespace forerun {
namespace {

constexpr const char* kNoEnvironment = R"({"schema":"env/1"})";

std::string key_of(const RecordHead& head) {
  return fmt::format("{} {}", head.kind == RecordKind::run ? "run" : "op", head.id);
}

class Merge {
 public:
  Merge(const std::vector<std::string>& files, const MergeOptions& options, const WorkControl& control)
      : files_(files), options_(options), work_(control) {}

  // Chooses the line that is kept of each id.
  Status choose() {
    work_.begin("lines read");
    return each_line([this](size_t file, const LineReader& lines, std::string_view line) -> Status {
      const auto head = heads_.read(line);
      if (!head) {
        problem(lines, "", head.error().what, is_torn(line, lines.line_ended()));
        return {};
      }
      if (const std::string wrong = wrong_with(*head, line); !wrong.empty()) {
        problem(lines, std::string(head->id), wrong, false);
        left_out_.emplace(file, lines.line_number());
        return {};
      }
      if (head->kind == RecordKind::environment) return {};
      if (!head->id.empty()) {
        consider(key_of(*head), {file, lines.line_number(), !head->status || *head->status == RunStatus::ok});
      } else {
        ++kept_;
      }
      return {};
    });
  }

  Status write(LineWriter& writer) {
    work_.begin("records written", kept_);
    writing_ = true;
    return each_line([&](size_t file, const LineReader& lines, std::string_view line) -> Status {
      if (file != environment_file_) environment_.clear();
      environment_file_ = file;
      const auto head = heads_.read(line);
      if (!head) return {};
      const bool left_out = left_out_.contains({file, lines.line_number()});
      if (head->kind == RecordKind::environment) environment_ = left_out ? std::string_view() : line;
      if (left_out || head->kind == RecordKind::environment) return {};
      if (!head->id.empty() && !is_chosen(key_of(*head), file, lines.line_number())) return {};
      if (head->kind == RecordKind::sample) {
        ++result_.samples;
        if (Status status = write_environment(writer); !status.ok()) return status;
        if (!options_.compact || head->id.empty()) return put(writer, line);
        return write_compact(writer, lines, std::string(head->id), line, compactor_.compact_sample(line));
      }
      ++result_.runs;
      if (!options_.compact || head->schema == "run/3") return put(writer, line);
      return write_compact(writer, lines, std::string(head->id), line, compactor_.compact_run(line));
    });
  }

  [[nodiscard]] const MergeResult& result() const { return result_; }

 private:
  struct Choice {
    size_t file = 0;
    int64_t line = 0;
    bool succeeded = false;
  };

  // Why a record cannot be used, as `forerun data check` says; empty where it can.
  std::string wrong_with(const RecordHead& head, std::string_view line) {
    switch (head.kind) {
      case RecordKind::run: {
        const auto record = runs_.decode(line, Fields::everything);
        return record ? implausible(*record) : record.error().what;
      }
      case RecordKind::sample: {
        const auto sample = samples_.decode(line);
        return sample ? "" : sample.error().what;
      }
      case RecordKind::environment: {
        const auto environment = samples_.decode_environment(line);
        return environment ? "" : environment.error().what;
      }
      case RecordKind::other: break;
    }
    return fmt::format("schema is \"{}\"", head.schema.substr(0, 60));
  }

  template <class Visit>
  Status each_line(Visit visit) {
    for (size_t file = 0; file < files_.size(); ++file) {
      auto lines = LineReader::open(files_[file]);
      if (!lines) return lines.error();
      while (true) {
        auto line = lines->next();
        if (!line) return line.error();
        if (!line->has_value()) break;
        if (is_blank(**line)) continue;
        if (Status status = visit(file, *lines, **line); !status.ok()) return status;
        if (Status status = writing_ ? work_.check() : work_.advance(); !status.ok()) return status;
      }
    }
    return {};
  }

  void consider(const std::string& key, const Choice& candidate) {
    const auto [known, added] = choices_.try_emplace(key, candidate);
    if (added) {
      ++kept_;
      return;
    }
    ++result_.repeats;
    if (known->second.succeeded || !candidate.succeeded) return;
    ++result_.replaced;
    known->second = candidate;
  }

  [[nodiscard]] bool is_chosen(const std::string& key, size_t file, int64_t line) const {
    const auto known = choices_.find(key);
    return known != choices_.end() && known->second.file == file && known->second.line == line;
  }

  // Samples stand behind the environment they were taken in.
  Status write_environment(LineWriter& writer) {
    if (environment_ == written_environment_) return {};
    written_environment_ = environment_;
    return writer.write(environment_.empty() ? kNoEnvironment : environment_);
  }

  Status write_compact(LineWriter& writer, const LineReader& lines, const std::string& id, std::string_view line,
                       const Result<std::string>& compact) {
    if (!compact) {
      problem(lines, id, "kept as it is: " + compact.error().what, false);
      return put(writer, line);
    }
    ++result_.compacted;
    return put(writer, *compact);
  }

  Status put(LineWriter& writer, std::string_view line) {
    if (Status status = work_.advance(); !status.ok()) return status;
    return writer.write(line);
  }

  void problem(const LineReader& lines, const std::string& id, const std::string& what, bool torn) {
    ++(torn ? result_.torn : result_.broken);
    if (!options_.problem) return;
    options_.problem({torn ? DataProblem::Kind::torn : DataProblem::Kind::broken, lines.name(), lines.line_number(), id,
                      torn ? kTornLine : what});
  }

  const std::vector<std::string>& files_;
  const MergeOptions& options_;
  Work work_;
  bool writing_ = false;
  RecordHeadReader heads_;
  RunDecoder runs_;
  OpSampleDecoder samples_;
  RecordCompactor compactor_;
  std::set<std::pair<size_t, int64_t>> left_out_;  // file and line of what is broken
  std::unordered_map<std::string, Choice> choices_;
  std::string environment_, written_environment_;
  size_t environment_file_ = 0;
  int64_t kept_ = 0;
  MergeResult result_;
};

}  // namespace

Result<MergeResult> merge_data(const std::string& out, const std::vector<std::string>& files,
                               const MergeOptions& options, const WorkControl& control) {
  constexpr int kUsualLevel = 19, kHighestLevel = 22;  // of Zstandard
  auto writer = LineWriter::create(
      out, {.overwrite = options.overwrite, .zstd_level = options.compact ? kHighestLevel : kUsualLevel});
  if (!writer) return writer.error();
  Merge merge(files, options, control);
  if (Status status = merge.choose(); !status.ok()) return status.error();
  if (Status status = merge.write(*writer); !status.ok()) return status.error();
  if (merge.result().runs + merge.result().samples == 0) return nothing_in(files, "records that can be used");
  if (Status status = writer->finish(); !status.ok()) return status.error();
  return merge.result();
}

}  // namespace forerun
