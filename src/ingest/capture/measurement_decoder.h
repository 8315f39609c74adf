// MeasurementDecoder: the measured fields of a run record, of either form -> RecordColumns.
//
//   "status": "ok", "mem": {"peak_allocated": 1000, ...}, "time_ms": {"pipelined_median": 1.5, ...},
//   "host_us": {"view": 3.1, "add": 9.0, "backward": {"view": 7.5}}, "profile": {"phases": {...}, "aligned": true},
//   "kernels": {"name": [0], "start": [2234460], "ns": [6780], "stream": [7], "launch": [2196980], "launch_ns": [40660],
//               "thread": [0], "op": [3]},                                   run/1: [[0, 2234.46, 6.78, 7, ..., 3], ...]
//   "alloc_trace": {"action": "Sarf", "address": [0, 0, 0, 0], "size": [...], "stream": [...], "address_base": 4096,
//                   "marks": [[1, "forward"]]}                               run/1: [["S", 0, 2097152, 0], ...]
#pragma once

#include "ingest/capture/json_walk.h"
#include "ingest/capture/record_columns.h"

namespace forerun {

class MeasurementDecoder : public JsonWalk {
 public:
  // Starts a record.
  void start(RecordColumns& columns, Fields fields) {
    columns_ = &columns;
    whole_ = fields == Fields::everything;
  }

  // `field` is one of those from RecordField::status on.
  bool decode(RecordField field, Value value);

 private:
  bool status(Value value);
  bool tried(Value value);
  bool host_times(Value value);
  bool memory(Value value);
  bool times(Value value);
  bool kernels(Value value);
  bool kernel_rows(Value value);
  bool kernel_columns(Value value);
  bool profile(Value value);
  bool kernel_names(Value value);
  bool trace(Value value);
  bool trace_rows(Value value);
  bool trace_columns(Value value);
  bool addresses(Value value, ColumnGroup& group, std::vector<int64_t>& out);
  bool marks(Value value);
  bool action(std::string_view letter, char& out);
  bool nanoseconds(Value value, std::string_view what, int64_t least, int64_t& out);
  bool least_zero(Value value, std::string_view what, int64_t& out);
  bool bytes(Value value, std::string_view what, Bytes& out);

  RecordColumns* columns_ = nullptr;
  bool whole_ = false;  // Fields::everything
};

}  // namespace forerun
