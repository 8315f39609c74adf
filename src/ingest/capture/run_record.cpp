#include "ingest/capture/run_record.h"

#include <fmt/format.h>

#include "base/line_reader.h"
#include "graph/graph_builder.h"

namespace forerun {
namespace {

constexpr const char* kRemedy = "capture the run again, or leave the record out";
constexpr std::string_view kMarkPrefix = "profiler.";

// Puts the decoded tables of one record together to a run.
class RecordBuilder {
 public:
  RecordBuilder(const RecordColumns& columns, AttributeDecoder& attributes)
      : columns_(columns), attributes_(attributes) {}

  Result<RunRecord> build(Fields fields) {
    RunRecord record;
    record.has_graph = columns_.has(RecordField::ops) && !columns_.ops.empty();
    const bool measured = fields == Fields::inputs_and_measurements && columns_.has(RecordField::status);
    const bool graph_optional = measured && columns_.measured.out_of_memory;
    if (!check_present(record.has_graph, graph_optional)) return error();
    if (record.has_graph && !build_graph()) return error();
    record.run.id = columns_.id;
    record.run.family = columns_.family;
    record.run.arguments = columns_.arguments;
    record.run.input = columns_.input;
    record.run.setup = columns_.setup;
    record.run.environment = columns_.environment;
    const size_t op_count = builder_.op_count();
    record.run.graph = builder_.finish();
    if (const Status verified = verify(record.run.graph); !verified.ok()) {
      return Error{"without profiler marks, " + verified.error().what, "", ""};
    }
    if (measured) {
      record.measured.emplace();
      if (!measure(*record.measured, record.has_graph ? op_count : 0)) return error();
    }
    return record;
  }

 private:
  bool fail(std::string what) {
    what_ = std::move(what);
    return false;
  }
  [[nodiscard]] Error error() const { return {what_, "", ""}; }

  bool check_present(bool has_graph, bool graph_optional) {
    for (const RecordField field : {RecordField::family, RecordField::input, RecordField::run, RecordField::params}) {
      if (!columns_.has(field)) return fail(fmt::format("the record lacks {}", name_of(field)));
    }
    if (!has_graph) return graph_optional || fail("the record has no ops");
    for (const RecordField field :
         {RecordField::op_names, RecordField::modules, RecordField::storages, RecordField::frees, RecordField::roots}) {
      if (!columns_.has(field)) return fail(fmt::format("the record lacks {}", name_of(field)));
    }
    return true;
  }

  bool build_graph() {
    builder_.set_parameter_count(columns_.parameter_count);
    builder_.set_parameter_tensors(columns_.parameter_tensors);
    if (!add_storages() || !add_roots()) return false;
    kept_before_.reserve(columns_.ops.size() + 1);
    for (const OpRow& row : columns_.ops) {
      kept_before_.push_back(static_cast<uint32_t>(builder_.op_count()));
      if (row.name >= columns_.op_names.size()) {
        return fail(fmt::format("op {} names entry {} of {} op_names", kept_before_.size() - 1, row.name,
                                columns_.op_names.size()));
      }
      if (is_mark(row)) continue;
      if (!add_op(row)) {
        return fail(fmt::format("op {} ({}): {}", kept_before_.size() - 1, columns_.op_names[row.name], what_));
      }
    }
    kept_before_.push_back(static_cast<uint32_t>(builder_.op_count()));
    if (builder_.op_count() == 0) return fail("the record has no ops but profiler marks");
    return add_frees();
  }

  [[nodiscard]] bool is_mark(const OpRow& row) const { return columns_.op_names[row.name].starts_with(kMarkPrefix); }

  bool add_storages() {
    int64_t total = 0;
    for (const StorageRow& row : columns_.storages) {
      if (row.bytes.value > RecordDecoder::kMostBytes - total)
        return fail("the storages have more than 2^60 bytes together");
      total += row.bytes.value;
      builder_.add_storage(row.bytes, row.on_gpu);
    }
    return true;
  }

  bool check_storage(uint64_t storage, std::string_view who) {
    if (storage < columns_.storages.size()) return true;
    return fail(fmt::format("{} names storage {} of {}", who, storage, columns_.storages.size()));
  }

  bool add_roots() {
    for (const RootRow& row : columns_.roots) {
      if (!check_storage(row.storage, "roots")) return false;
      builder_.mark_root(StorageId(row.storage), row.root, row.name);
    }
    return true;
  }

  bool add_operands(uint32_t first, uint32_t count, const char* side, std::vector<TensorId>& tensors) {
    tensors.clear();
    for (uint32_t i = 0; i < count; ++i) {
      const OperandRow& row = columns_.operands[first + i];
      if (row.storage >= columns_.storages.size()) return check_storage(row.storage, fmt::format("{} {}", side, i));
      const std::span<const int64_t> shape(columns_.extents.data() + row.first_extent, row.rank);
      tensors.push_back(builder_.add_tensor(StorageId(row.storage), row.dtype, shape));
    }
    return true;
  }

  bool add_op(const OpRow& row) {
    GraphBuilder::OpSpec spec;
    spec.name = columns_.op_names[row.name];
    spec.phase = row.phase;
    spec.sequence = row.sequence;
    spec.autograd_node = row.autograd_node;
    if (row.module < -1 || row.module >= static_cast<int64_t>(columns_.modules.size())) {
      return fail(fmt::format("it names entry {} of {} modules", row.module, columns_.modules.size()));
    }
    if (row.module >= 0) spec.module = columns_.modules[static_cast<size_t>(row.module)];
    if (!add_operands(row.first_operand, row.input_count, "input", inputs_)) return false;
    if (!add_operands(row.first_operand + row.input_count, row.output_count, "output", outputs_)) return false;
    spec.inputs = inputs_;
    spec.outputs = outputs_;
    AttributesId id = builder_.find_attributes(row.attributes);
    if (!id.valid()) {
      auto attributes = attributes_.decode(row.attributes);
      if (!attributes) return fail("its attributes: the text " + attributes.error().what);
      id = builder_.remember_attributes(row.attributes, std::move(*attributes));
    }
    builder_.add_op(spec, id);
    return true;
  }

  bool add_frees() {
    const size_t end = builder_.op_count();
    std::vector<bool> freed(columns_.storages.size());
    for (const FreeRow& row : columns_.frees) {
      if (!check_storage(row.storage, "frees")) return false;
      if (row.op >= kept_before_.size()) {
        return fail(fmt::format("frees names op {} of {}", row.op, columns_.ops.size()));
      }
      if (freed[row.storage]) return fail(fmt::format("storage {} is freed twice", row.storage));
      freed[row.storage] = true;
      const uint32_t before = kept_before_[row.op];
      const StorageId storage(row.storage);
      if (before == end && builder_.graph().storage(storage).root != Root::none) continue;
      builder_.mark_freed(storage, OpId(before));
    }
    return true;
  }

  bool measure(Measurement& out, size_t op_count) {
    const MeasuredNumbers& in = columns_.measured;
    for (const RecordField field : {RecordField::mem, RecordField::time_ms, RecordField::kernels}) {
      if (!in.out_of_memory && !columns_.has(field))
        return fail(fmt::format("status is ok, but {} is missing", name_of(field)));
    }
    out.out_of_memory = in.out_of_memory;
    out.pipelined_median_ms = in.pipelined_median_ms;
    out.host_us = in.host_us;
    out.peak_allocated = in.peak_allocated;
    out.peak_reserved = in.peak_reserved;
    out.peak_active = in.peak_active;
    out.peak_requested = in.peak_requested;
    out.allocated = in.allocated;
    out.aligned = in.aligned;
    out.op_gpu_us.assign(op_count, 0);
    out.op_kernels.assign(op_count, 0);
    for (const KernelRow& row : columns_.kernels) {
      out.gpu_busy_us += row.us;
      if (row.op < 0 || op_count == 0) continue;
      const auto index = static_cast<uint64_t>(row.op);
      if (index >= columns_.ops.size())
        return fail(fmt::format("a kernel names op {} of {}", row.op, columns_.ops.size()));
      if (is_mark(columns_.ops[index])) continue;
      out.op_gpu_us[kept_before_[index]] += row.us;
      out.op_kernels[kept_before_[index]] += 1;
    }
    return true;
  }

  const RecordColumns& columns_;
  AttributeDecoder& attributes_;
  GraphBuilder builder_;
  std::vector<uint32_t> kept_before_;  // by op of the record: how many ops before it are in the graph
  std::vector<TensorId> inputs_, outputs_;
  std::string what_;
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

class RunRecordReader::Impl {
 public:
  Impl(LineReader lines, Fields fields) : lines_(std::move(lines)), fields_(fields) {}

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
    } while (is_blank(*line));
    if (const Status decoded = decoder_.decode(*line, fields_, columns_); !decoded.ok()) return placed(decoded.error());
    auto record = RecordBuilder(columns_, attributes_).build(fields_);
    if (!record) return placed(record.error());
    if (record->run.id.empty()) record->run.id = fmt::format("record {}", lines_.line_number());
    return std::optional<RunRecord>(std::move(*record));
  }

  [[nodiscard]] bool file_broken() const { return file_broken_; }

 private:
  [[nodiscard]] Error placed(const Error& error) const {
    std::string where = fmt::format("{}, record {}", lines_.name(), lines_.line_number());
    if (!columns_.id.empty()) where += fmt::format(" ({})", columns_.id);
    return {error.what, where, kRemedy};
  }

  LineReader lines_;
  Fields fields_;
  RecordDecoder decoder_;
  AttributeDecoder attributes_;
  RecordColumns columns_;
  bool file_broken_ = false;
};

RunRecordReader::RunRecordReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunRecordReader::RunRecordReader(RunRecordReader&&) noexcept = default;
RunRecordReader& RunRecordReader::operator=(RunRecordReader&&) noexcept = default;
RunRecordReader::~RunRecordReader() = default;

Result<RunRecordReader> RunRecordReader::open(const std::string& path, Fields fields) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return RunRecordReader(std::make_unique<Impl>(std::move(*lines), fields));
}

RunRecordReader RunRecordReader::from_text(std::string_view text, const std::string& name, Fields fields) {
  return RunRecordReader(std::make_unique<Impl>(LineReader::from_text(text, name), fields));
}

Result<std::optional<RunRecord>> RunRecordReader::next() { return impl_->next(); }
bool RunRecordReader::file_broken() const { return impl_->file_broken(); }

}  // namespace forerun
