#include "ingest/capture/op_sample.h"

#include <fmt/format.h>

#include "base/line_reader.h"
#include "ingest/capture/attribute_decoder.h"
#include "ingest/capture/environment_decoder.h"
#include "ingest/capture/record_columns.h"
#include "ingest/capture/record_head.h"

namespace forerun {
namespace {

constexpr const char* kRemedy = "measure the op again, or leave the record out";

}  // namespace

std::optional<DType> OpSample::dtype() const {
  std::optional<DType> first;
  for (const auto& input : inputs) {
    if (!input) continue;
    if (is_floating(input->dtype)) return input->dtype;
    if (!first) first = input->dtype;
  }
  return first;
}

int64_t OpSample::kernel_count() const {
  int64_t count = 0;
  for (const SampleKernel& kernel : kernels) count += kernel.count;
  return count;
}

class OpSampleDecoder::Impl : JsonWalk {
 public:
  Result<OpSample> decode(std::string_view line) {
    sample_ = {};
    seen_.clear();
    if (!object(line, [this](std::string_view key, Value value) { return field(key, value); })) return error();
    for (const char* needed : {"op", "inputs", "outputs", "status"}) {
      if (!has(needed)) return Error{fmt::format("the sample lacks {}", needed), "", ""};
    }
    if (sample_.status == RunStatus::ok) {
      if (!has("us")) return Error{"status is ok, but us is missing", "", ""};
      if (sample_.us <= 0) return Error{fmt::format("us is {}: a time is above 0", sample_.us), "", ""};
    }
    return sample_;
  }

  Result<Environment> decode_environment(std::string_view line) {
    Environment environment;
    EnvironmentDecoder decoder;
    const bool read = object(line, [&](std::string_view key, Value value) {
      return decoder.entry(key, value, environment) || fail(decoder.complaint());
    });
    if (!read) return error();
    return environment;
  }

  [[nodiscard]] const std::string& id() const { return sample_.id; }

 private:
  [[nodiscard]] Error error() const { return {complaint(), "", ""}; }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::find(seen_.begin(), seen_.end(), name) != seen_.end();
  }

  template <class Visit>
  bool object(std::string_view line, Visit visit) {
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document.get_object().get(object);
    if (code != simdjson::SUCCESS) return fail(code, "the record", "a JSON object");
    if (!each_field(object, "the record", visit)) return false;
    const char* rest = nullptr;
    return document.current_location().get(rest) != simdjson::SUCCESS ||
           fail("the record is followed by more text on its line");
  }

  bool field(std::string_view key, Value value) {
    std::string_view name;
    OpSample& s = sample_;
    seen_.emplace_back(key);
    if (key == "id") return text(value, "id", s.id);
    if (key == "grid") return text(value, "grid", s.grid);
    if (key == "family") return text(value, "family", s.family);
    if (key == "op") return text(value, "op", s.op);
    if (key == "attributes") return attributes(value);
    if (key == "inputs") return tensors(value, "input", s.inputs);
    if (key == "outputs") return tensors(value, "output", s.outputs);
    if (key == "us") return number(value, "us", s.us);
    if (key == "spread") return number(value, "spread", s.spread);
    if (key == "kernels") return kernels(value);
    if (key == "workspace") return workspace(value);
    if (key == "error") return text(value, "error", s.error);
    if (key == "precision") {
      return text(value, "precision", name) &&
             named("precision", name, precision_named(name), "fp32, tf32", s.precision);
    }
    if (key != "status") return true;
    return text(value, "status", name) && named("status", name, run_status_named(name), "ok, oom, failed", s.status);
  }

  bool attributes(Value value) {
    std::string_view raw;
    if (!object_text(value, "attributes", raw)) return false;
    auto decoded = attributes_.decode(raw);
    if (!decoded) return fail("attributes: the text " + decoded.error().what);
    sample_.attributes = std::move(*decoded);
    return true;
  }

  bool tensors(Value value, const char* side, std::vector<std::optional<SampleTensor>>& out) {
    out.clear();
    return each(value, side, [&](size_t position, Value item) {
      auto& slot = out.emplace_back();
      if (is_null(item)) return true;
      return tensor(item, slot.emplace()) || fail(fmt::format("{} {}: {}", side, position, complaint()));
    });
  }

  // [dtype, shape, strides or null]
  bool tensor(Value value, SampleTensor& out) {
    size_t entries = 0;
    const bool read = each(value, "it", [&](size_t position, Value item) {
      ++entries;
      std::string_view name;
      if (position == 0) {
        if (!text(item, "its dtype", name)) return false;
        const auto dtype = dtype_named(name);
        return named("its dtype", name, dtype, dtype ? "" : known_dtypes(), out.dtype);
      }
      if (position == 1) return extents(item, "its shape", out.shape);
      if (position > 2 || is_null(item)) return true;
      return extents(item, "its strides", out.strides.emplace());
    });
    if (!read) return false;
    if (entries < 3) return fail("is not [dtype, shape, strides]");
    if (out.strides && out.strides->size() != out.shape.size()) {
      return fail(fmt::format("has {} extents, but {} strides", out.shape.size(), out.strides->size()));
    }
    int64_t elements = 1;  // of the extents above 0
    for (const int64_t extent : out.shape) {
      if (extent > 0 && elements > RecordLimits::kMostElements / extent) {
        return fail("its shape has more than 2^46 elements");
      }
      elements *= std::max<int64_t>(extent, 1);
    }
    return true;
  }

  bool extents(Value value, std::string_view what, Shape& out) {
    out.clear();
    return each(value, what, [&](size_t position, Value item) {
      int64_t extent = 0;
      if (position >= RecordLimits::kHighestRank) return fail(fmt::format("{} has more than 64 entries", what));
      if (!whole(item, what, extent)) return false;
      if (extent < 0) return fail(fmt::format("{} has a negative entry ({})", what, extent));
      out.push_back(extent);
      return true;
    });
  }

  // [name, microseconds] or [name, microseconds of all, how many]
  bool kernels(Value value) {
    sample_.kernels.clear();
    return each(value, "kernels", [&](size_t position, Value item) {
      SampleKernel& kernel = sample_.kernels.emplace_back();
      size_t entries = 0;
      const bool read = each(item, "a kernel", [&](size_t place, Value part) {
        ++entries;
        if (place == 0) return text(part, "a kernel's name", kernel.name);
        if (place == 1) return number(part, "a kernel's duration", kernel.us);
        return place > 2 || whole(part, "how many kernels", kernel.count);
      });
      if (!read) return false;
      if (entries < 2) return fail(fmt::format("kernel {} is not [name, microseconds]", position));
      if (kernel.us < 0) return fail(fmt::format("kernel {} lasts {} us", position, kernel.us));
      return (kernel.count > 0 && kernel.count < INT32_MAX) ||
             fail(fmt::format("kernel {} stands for {}", position, kernel.count));
    });
  }

  bool workspace(Value value) {
    if (!whole(value, "workspace", sample_.workspace.value)) return false;
    const int64_t bytes = sample_.workspace.value;
    return (bytes >= 0 && bytes <= RecordLimits::kMostBytes) ||
           fail(fmt::format("workspace is {}, not between 0 and 2^60", bytes));
  }

  simdjson::ondemand::parser parser_;
  AttributeDecoder attributes_;
  OpSample sample_;
  std::vector<std::string> seen_;
};

OpSampleDecoder::OpSampleDecoder() : impl_(std::make_unique<Impl>()) {}
OpSampleDecoder::OpSampleDecoder(OpSampleDecoder&&) noexcept = default;
OpSampleDecoder& OpSampleDecoder::operator=(OpSampleDecoder&&) noexcept = default;
OpSampleDecoder::~OpSampleDecoder() = default;

Result<OpSample> OpSampleDecoder::decode(std::string_view line) { return impl_->decode(line); }
Result<Environment> OpSampleDecoder::decode_environment(std::string_view line) {
  return impl_->decode_environment(line);
}
const std::string& OpSampleDecoder::id() const { return impl_->id(); }

class OpSampleReader::Impl {
 public:
  explicit Impl(LineReader lines) : lines_(std::move(lines)) {}

  Result<std::optional<OpSample>> next() {
    while (true) {
      auto line = lines_.next();
      if (!line) {
        file_broken_ = true;
        return line.error();
      }
      if (!line->has_value()) return std::optional<OpSample>();
      const RecordKind kind = heads_.kind(**line);
      if (kind == RecordKind::environment) {
        auto environment = decoder_.decode_environment(**line);
        if (!environment) return placed(environment.error(), "");
        environment_ = std::move(*environment);
      }
      if (kind != RecordKind::sample) continue;
      auto sample = decoder_.decode(**line);
      if (!sample) return placed(sample.error(), decoder_.id());
      return std::optional<OpSample>(std::move(*sample));
    }
  }

  [[nodiscard]] const Environment& environment() const { return environment_; }
  [[nodiscard]] bool file_broken() const { return file_broken_; }

 private:
  [[nodiscard]] Error placed(const Error& error, const std::string& id) const {
    std::string where = fmt::format("{}, record {}", lines_.name(), lines_.line_number());
    if (!id.empty()) where += fmt::format(" ({})", id);
    return {error.what, where, kRemedy};
  }

  LineReader lines_;
  RecordHeadReader heads_;
  OpSampleDecoder decoder_;
  Environment environment_;
  bool file_broken_ = false;
};

OpSampleReader::OpSampleReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OpSampleReader::OpSampleReader(OpSampleReader&&) noexcept = default;
OpSampleReader& OpSampleReader::operator=(OpSampleReader&&) noexcept = default;
OpSampleReader::~OpSampleReader() = default;

Result<OpSampleReader> OpSampleReader::open(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return OpSampleReader(std::make_unique<Impl>(std::move(*lines)));
}

OpSampleReader OpSampleReader::from_text(std::string_view text, const std::string& name) {
  return OpSampleReader(std::make_unique<Impl>(LineReader::from_text(text, name)));
}

Result<std::optional<OpSample>> OpSampleReader::next() { return impl_->next(); }
const Environment& OpSampleReader::environment() const { return impl_->environment(); }
bool OpSampleReader::file_broken() const { return impl_->file_broken(); }

}  // namespace forerun
