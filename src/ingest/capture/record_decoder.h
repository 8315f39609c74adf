// RecordDecoder: the JSON text of one run record, run/1 to run/3 -> RecordColumns, its fields as flat tables.
//
// Checks what can be told from one field alone: types, arity, ranges of extents and sizes, known names. What needs two
// fields (does an op name a storage that exists?) is for run_builder.cpp, so the fields may come in any order. Whether a
// field has the form of run/1 (a list for each op) or of columns (column_decoder.h) is told from the field itself.
//
//   {"schema": "run/1", "id": "starter/00000-rnn", "family": "rnn", "args": {"h": 256},
//    "input": ["tokens", 33, 256, 32000, "lm"],
//    "run": {"precision": "fp32", "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1}, "channels_last": false},
//    "env": {"gpu": "NVIDIA H200", "torch": "2.11.0", "cuda": "13.0", "cudnn": 91900},
//    "params": 42, "param_tensors": 2, "op_names": ["aten.mm.default"], "modules": ["", "out"],
//    "ops": [[0, "f", 1, [[0, "float32", [2, 3]], [1, "float32", [3, 7]]], [[2, "float32", [2, 7]]], {}, 1, ""]],
//    "storages": [[24, "cuda"], [84, "cuda"], [56, "cuda"]], "frees": [[1, 2]],
//    "roots": {"1": ["param", "out.weight"]},
//    ... and what was measured: "status", "mem", "time_ms", "kernels", "profile"}
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "ingest/capture/attribute_decoder.h"
#include "ingest/capture/record_columns.h"

namespace forerun {

class RecordDecoder {
 public:
  RecordDecoder();
  RecordDecoder(RecordDecoder&&) noexcept;
  RecordDecoder& operator=(RecordDecoder&&) noexcept;
  ~RecordDecoder();

  // `text` must be followed by LineReader::kPadding readable bytes. On an Error, `columns` holds what came before.
  Status decode(std::string_view text, Fields fields, RecordColumns& columns);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
