#include "ingest/capture/run_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

constexpr std::string_view kMarkPrefix = "profiler.";

class RunBuilder {
 public:
  RunBuilder(const RecordColumns& columns, AttributeDecoder& attributes) : columns_(columns), attributes_(attributes) {}

  Result<RunRecord> build(Fields fields) {
    RunRecord record;
    record.has_graph = columns_.has(RecordField::ops) && !columns_.ops.empty();
    const bool measured = columns_.has(RecordField::status);
    // A run that did not come to its end has no ops, nor has one that is only described.
    const bool graph_optional = measured ? columns_.measured.status != RunStatus::ok
                                         : fields == Fields::inputs && !columns_.has(RecordField::ops);
    if (!check_described(graph_optional)) return error();
    if (fields != Fields::description && !check_graph(record.has_graph, graph_optional)) return error();
    builder_.set_parameter_count(columns_.parameter_count);
    builder_.set_parameter_tensors(columns_.parameter_tensors);
    if (record.has_graph && !build_graph()) return error();
    record.run.id = columns_.id;
    record.run.family = columns_.family;
    record.run.arguments = columns_.arguments;
    record.run.input = columns_.input;
    record.run.setup = columns_.setup;
    record.run.environment = columns_.environment;
    record.run.backend = columns_.backend;
    if (columns_.has(RecordField::dynamo)) record.run.dynamo = std::make_shared<const DynamoTrace>(columns_.dynamo);
    record.run.warnings.assign(columns_.warnings.begin(), columns_.warnings.end());
    record.run.assumed.assign(columns_.assumed.begin(), columns_.assumed.end());
    const size_t op_count = builder_.op_count();
    record.run.graph = builder_.finish();
    if (const Status verified = verify(record.run.graph); !verified.ok()) {
      return Error{"without profiler marks, " + verified.error().what, "", ""};
    }
    if (measured) {
      record.measured.emplace();
      if (!measure(*record.measured, record.has_graph ? op_count : 0)) return error();
    }
    if (columns_.has(RecordField::alloc_trace)) record.allocator = columns_.trace;
    return record;
  }

 private:
  bool fail(std::string what) {
    what_ = std::move(what);
    return false;
  }
  [[nodiscard]] Error error() const { return {what_, "", ""}; }

  bool check_described(bool graph_optional) {
    for (const RecordField field : {RecordField::family, RecordField::input, RecordField::run}) {
      if (!columns_.has(field)) return fail(fmt::format("the record lacks {}", name_of(field)));
    }
    return graph_optional || columns_.has(RecordField::params) || fail("the record lacks params");
  }

  bool check_graph(bool has_graph, bool optional) {
    if (!has_graph) return optional || fail("the record has no ops");
    for (const RecordField field :
         {RecordField::op_names, RecordField::modules, RecordField::storages, RecordField::frees, RecordField::roots}) {
      if (!columns_.has(field)) return fail(fmt::format("the record lacks {}", name_of(field)));
    }
    return true;
  }

  bool build_graph() {
    if (!add_storages() || !add_roots()) return false;
    if (!check_pieces()) return false;
    kept_before_.reserve(columns_.ops.size() + 1);
    tensor_ids_.assign(columns_.tensors.size(), TensorId());
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
      if (row.bytes.value > RecordLimits::kMostBytes - total)
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
      const uint32_t index = columns_.operands[first + i];
      if (!tensor_ids_[index].valid() && !add_tensor(index)) return fail(fmt::format("{} {}{}", side, i, what_));
      tensors.push_back(tensor_ids_[index]);
    }
    return true;
  }

  [[nodiscard]] std::span<const int64_t> extents(uint32_t shape) const {
    const ExtentsRow& row = columns_.shapes[shape];
    return {columns_.extents.data() + row.first, row.rank};
  }

  bool add_tensor(uint32_t index) {
    const TensorRow& row = columns_.tensors[index];
    const std::span<const int64_t> shape = extents(row.shape);
    if (row.storage >= columns_.storages.size()) return check_storage(row.storage, "");
    int64_t elements = 1;  // of the extents above 0
    for (const int64_t extent : shape) {
      if (extent > 0 && elements > RecordLimits::kMostElements / extent) {
        return fail(": its shape has more than 2^46 elements");
      }
      elements *= std::max<int64_t>(extent, 1);
    }
    // A storage that was recorded before it was resized has no bytes: strides into it tell nothing.
    std::span<const int64_t> strides;
    if (row.strides != TensorRow::kUnknown && columns_.storages[row.storage].bytes.value > 0) {
      if (!strides_of(row, shape, strides)) return false;
    }
    tensor_ids_[index] = builder_.add_tensor(StorageId(row.storage), row.dtype, shape, strides);
    return true;
  }

  bool strides_of(const TensorRow& row, std::span<const int64_t> shape, std::span<const int64_t>& strides) {
    if (row.strides == TensorRow::kContiguous) {
      contiguous_.assign(shape.size(), 1);
      for (size_t d = shape.size(); d-- > 1;) contiguous_[d - 1] = contiguous_[d] * std::max<int64_t>(shape[d], 1);
      strides = contiguous_;
    } else {
      strides = extents(static_cast<uint32_t>(row.strides));
    }
    if (strides.size() != shape.size()) {
      return fail(fmt::format(": its shape has {} extents, but it has {} strides", shape.size(), strides.size()));
    }
    return inside(row, shape, strides);
  }

  // The last element, from the offset on, must lie in the storage.
  bool inside(const TensorRow& row, std::span<const int64_t> shape, std::span<const int64_t> strides) {
    const int64_t held = columns_.storages[row.storage].bytes.value / size_of(row.dtype);
    int64_t last = row.offset;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return true;
      int64_t reach = 0;
      if (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) || __builtin_add_overflow(last, reach, &last)) {
        return fail(": its strides reach beyond 2^63 elements");
      }
    }
    if (last < held) return true;
    return fail(fmt::format(": its element {} lies outside storage {}, which has {}", last, row.storage, held));
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
    spec.piece = piece_of(static_cast<uint32_t>(kept_before_.size() - 1));
    builder_.add_op(spec, id);
    return true;
  }

  bool check_pieces() {
    uint32_t behind = 0;
    for (const PieceRow& row : columns_.pieces) {
      if (row.first < behind || row.end <= row.first || row.end > columns_.ops.size()) {
        return fail(fmt::format("dynamo.traced has ops {} to {} of {}, behind op {}", row.first, row.end,
                                columns_.ops.size(), behind));
      }
      behind = row.end;
    }
    return true;
  }

  // Asked of ops in their order.
  uint16_t piece_of(uint32_t op) {
    while (next_piece_ < columns_.pieces.size() && columns_.pieces[next_piece_].end <= op) ++next_piece_;
    const bool inside = next_piece_ < columns_.pieces.size() && columns_.pieces[next_piece_].first <= op;
    return inside ? columns_.pieces[next_piece_].piece : uint16_t{0};
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
    out = columns_.measured;
    for (const RecordField field : {RecordField::mem, RecordField::time_ms, RecordField::kernels}) {
      if (out.status == RunStatus::ok && !columns_.has(field))
        return fail(fmt::format("status is ok, but {} is missing", name_of(field)));
    }
    out.kernel_count = static_cast<int64_t>(columns_.kernels.size());
    out.op_gpu_us.assign(op_count, 0);
    out.op_kernels.assign(op_count, 0);
    out.op_gap_us.assign(op_count, 0);
    out.op_span_us.assign(op_count, 0);
    std::vector<double> op_end(op_count, 0);
    std::optional<size_t> last_op;  // whose kernel ended last
    double last_end = 0;
    for (const KernelRow& row : columns_.kernels) {
      const double us = static_cast<double>(row.ns) / 1e3;
      const double start = static_cast<double>(row.start_ns) / 1e3;
      if (last_op) out.op_gap_us[*last_op] += std::max(start - last_end, 0.0);
      last_end = std::max(last_end, start + us);
      last_op.reset();
      out.gpu_busy_us += us;
      if (row.op < 0) out.unmatched_us += us;
      if (row.op < 0 || op_count == 0) continue;
      const auto index = static_cast<uint64_t>(row.op);
      if (index >= columns_.ops.size())
        return fail(fmt::format("a kernel names op {} of {}", row.op, columns_.ops.size()));
      if (is_mark(columns_.ops[index])) continue;
      const size_t op = kept_before_[index];
      last_op = op;
      out.op_gpu_us[op] += us;
      out.op_kernels[op] += 1;
      const double end = std::max(op_end[op], start + us);
      out.op_span_us[op] += end - (out.op_kernels[op] == 1 ? start : std::max(start, op_end[op]));
      op_end[op] = end;
    }
    return check_kernel_names();
  }

  bool check_kernel_names() {
    if (!columns_.has(RecordField::kernel_names)) return true;
    for (size_t i = 0; i < columns_.kernels.size(); ++i) {
      const int64_t name = columns_.kernels[i].name;
      if (name < 0 || static_cast<uint64_t>(name) >= columns_.kernel_name_count) {
        return fail(fmt::format("kernel {} names entry {} of {} kernel_names", i, name, columns_.kernel_name_count));
      }
    }
    return true;
  }

  const RecordColumns& columns_;
  AttributeDecoder& attributes_;
  GraphBuilder builder_;
  size_t next_piece_ = 0;
  std::vector<uint32_t> kept_before_;  // by op of the record: how many ops before it are in the graph
  std::vector<TensorId> tensor_ids_;   // by tensor of the record; invalid: not added yet
  std::vector<TensorId> inputs_, outputs_;
  std::vector<int64_t> contiguous_;
  std::string what_;
};

}  // namespace

Result<RunRecord> build_run_record(const RecordColumns& columns, Fields fields, AttributeDecoder& attributes) {
  return RunBuilder(columns, attributes).build(fields);
}

}  // namespace forerun
