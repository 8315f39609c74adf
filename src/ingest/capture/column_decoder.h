// ColumnDecoder: the tables and column groups of a run/2 or run/3 record that describe the iteration -> rows of RecordColumns.
//
//   "dtypes": ["float32"], "shapes": [[2, 3], [3, 7], [1, 3]], "attributes": [{}], "nodes": ["MmBackward0"],
//   "tensors": {"storage": [0, 1], "dtype": [0, 0], "shape": [0, 1], "strides": [-1, 2], "offset": [0, 0]},
//   "ops": {"name": [0], "phase": "f", "module": [1], "inputs": [[0, 1]], "outputs": [[2]], "attributes": [0],
//           "sequence": [1], "node": [-1]},
//   "storages": {"bytes": [24, 84], "host": [1]}, "frees": {"op": [1], "storage": [2]},
//   "roots": {"storage": [0, 1], "kind": "ip", "name": ["x", "fc.weight"]}
//
// A column of run/3 may be packed: {"differences": [...]} (json_walk.h), and ops.inputs and ops.outputs, both or none, as
// {"back": [[0, 0], [1]]}: how far behind the newest tensor, counting through the inputs and outputs of op after op; 0 is
// the next that was not named yet.
//
// Columns of a group must be of one length. Groups may come in any order: what points from one to another is put
// together by finish(). strides and offset of tensors may be missing: not known, and 0.
#pragma once

#include "ingest/capture/json_walk.h"
#include "ingest/capture/record_columns.h"

namespace forerun {

class ColumnDecoder : public JsonWalk {
 public:
  // Starts a record.
  void start(RecordColumns& columns);

  bool dtypes(Value value);
  bool shapes(Value value);
  bool attributes(Value value);
  bool nodes(Value value);
  bool tensors(Value value);
  bool ops(Value value);
  void forget_ops() { has_ops_ = false; }  // the record has them in the form of run/1 after all
  bool storages(Value value);
  bool frees(Value value);
  bool roots(simdjson::ondemand::object object);

  // All fields are read: resolves the indices between them.
  bool finish();

 private:
  struct OperandLists {
    std::vector<uint32_t> counts;  // by op
    std::vector<uint32_t> tensors;
    bool packed = false;  // tensors are distances behind the newest
  };
  bool operands(Value value, std::string_view what, OperandLists& out);
  bool operand_lists(Value value, std::string_view what, OperandLists& out);
  bool unpack_operands();
  bool shape(Value value);
  bool sequences(Value value);
  bool packed_sequences(Value value);
  bool finish_tensors();
  bool finish_ops();

  RecordColumns* columns_ = nullptr;
  bool has_ops_ = false;
  std::vector<std::string_view> dtypes_, attributes_, nodes_;
  std::vector<ExtentsRow> shapes_;
  std::vector<int64_t> extents_;
  std::vector<uint32_t> tensor_storage_, tensor_dtype_, tensor_shape_;
  std::vector<int64_t> tensor_strides_, tensor_offset_;
  std::vector<uint32_t> op_name_, op_attributes_, op_sequence_;
  std::vector<int64_t> op_module_, op_node_;
  std::string_view op_phase_;
  OperandLists inputs_, outputs_;
};

}  // namespace forerun
