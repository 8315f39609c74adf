#include "ingest/capture/run_record.h"

#include <fmt/format.h>

#include "base/line_reader.h"
#include "ingest/capture/record_decoder.h"
#include "ingest/capture/record_head.h"
#include "ingest/capture/run_builder.h"

namespace forerun {

class RunDecoder::Impl {
 public:
  Result<RunRecord> decode(std::string_view line, Fields fields, const RecordSizes& sizes) {
    if (Status decoded = decoder_.decode(line, fields, columns_); !decoded.ok()) return decoded.error();
    if (sizes.any()) {
      if (Status moved = move_to(sizes, columns_, moved_texts_); !moved.ok()) return moved.error();
    }
    return build_run_record(columns_, fields, attributes_);
  }
  [[nodiscard]] const std::string& id() const { return columns_.id; }

 private:
  RecordDecoder decoder_;
  AttributeDecoder attributes_;
  RecordColumns columns_;
  std::vector<std::string> moved_texts_;
};

RunDecoder::RunDecoder() : impl_(std::make_unique<Impl>()) {}
RunDecoder::RunDecoder(RunDecoder&&) noexcept = default;
RunDecoder& RunDecoder::operator=(RunDecoder&&) noexcept = default;
RunDecoder::~RunDecoder() = default;

Result<RunRecord> RunDecoder::decode(std::string_view line, Fields fields, const RecordSizes& sizes) {
  return impl_->decode(line, fields, sizes);
}
const std::string& RunDecoder::id() const { return impl_->id(); }

class RunRecordReader::Impl {
 public:
  Impl(LineReader lines, Fields fields, const RecordSizes& sizes)
      : lines_(std::move(lines)), fields_(fields), sizes_(sizes) {}

  Result<std::optional<RunRecord>> next() {
    std::optional<std::string_view> line;
    do {
      auto read = lines_.next();
      if (!read) {
        file_broken_ = true;
        return read.error();
      }
      line = *read;
      if (!line) return std::optional<RunRecord>();
    } while (is_blank(*line) || is_other(heads_.kind(*line)));
    auto record = decoder_.decode(*line, fields_, sizes_);
    if (!record) return placed(record.error());
    if (record->run.id.empty()) record->run.id = fmt::format("record {}", lines_.line_number());
    return std::optional<RunRecord>(std::move(*record));
  }

  [[nodiscard]] bool file_broken() const { return file_broken_; }

 private:
  // A schema that nobody knows is for the decoder to name.
  static bool is_other(RecordKind kind) { return kind == RecordKind::sample || kind == RecordKind::environment; }

  [[nodiscard]] Error placed(const Error& error) const {
    std::string where = fmt::format("{}, record {}", lines_.name(), lines_.line_number());
    if (!decoder_.id().empty()) where += fmt::format(" ({})", decoder_.id());
    return {error.what, where, error.remedy.empty() ? kBrokenRecordRemedy : error.remedy};
  }

  LineReader lines_;
  Fields fields_;
  RecordSizes sizes_;
  RecordHeadReader heads_;
  RunDecoder decoder_;
  bool file_broken_ = false;
};

RunRecordReader::RunRecordReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunRecordReader::RunRecordReader(RunRecordReader&&) noexcept = default;
RunRecordReader& RunRecordReader::operator=(RunRecordReader&&) noexcept = default;
RunRecordReader::~RunRecordReader() = default;

Result<RunRecordReader> RunRecordReader::open(const std::string& path, Fields fields, const RecordSizes& sizes) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return RunRecordReader(std::make_unique<Impl>(std::move(*lines), fields, sizes));
}

RunRecordReader RunRecordReader::from_text(std::string_view text, const std::string& name, Fields fields,
                                           const RecordSizes& sizes) {
  return RunRecordReader(std::make_unique<Impl>(LineReader::from_text(text, name), fields, sizes));
}

Result<std::optional<RunRecord>> RunRecordReader::next() { return impl_->next(); }
bool RunRecordReader::file_broken() const { return impl_->file_broken(); }

}  // namespace forerun
