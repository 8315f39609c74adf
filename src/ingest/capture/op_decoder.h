// OpDecoder: the `ops` list of a run/1 record -> rows of RecordColumns.
//
// An op is [name index, phase "f" / "b" / "u", module index, inputs, outputs, attributes, sequence number, autograd
// node]; an input or output is [storage id, dtype, shape]. Further entries of either are passed over.
#pragma once

#include "ingest/capture/json_walk.h"
#include "ingest/capture/record_columns.h"

namespace forerun {

class OpDecoder : public JsonWalk {
 public:
  explicit OpDecoder(RecordColumns& columns) : columns_(columns) {}

  bool decode(Value ops);

 private:
  bool op(Value value);
  bool entry(size_t position, Value value, OpRow& row);
  bool phase(Value value, OpRow& row);
  bool sequence(Value value, OpRow& row);
  bool operands(Value value, const char* side, uint32_t& count);
  bool operand(Value value);
  bool shape(Value value, TensorRow& row);
  [[nodiscard]] std::string place(std::string_view complaint) const;

  RecordColumns& columns_;
  size_t op_ = 0;
  std::optional<uint32_t> name_;  // of the op being decoded
  const char* side_ = nullptr;    // "input" or "output" while in one
  size_t position_ = 0;
};

}  // namespace forerun
