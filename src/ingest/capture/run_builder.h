// build_run_record: the tables of one record -> a training run with what was measured.
//
// Checks what needs two tables: that what an op, a free, a root or a kernel names exists, that tensors lie inside their
// storages, and that the graph verifies. Takes out the profiler's marks and renumbers what comes after them.
#pragma once

#include "ingest/capture/attribute_decoder.h"
#include "ingest/capture/record_columns.h"
#include "ingest/capture/run_record.h"

namespace forerun {

Result<RunRecord> build_run_record(const RecordColumns& columns, Fields fields, AttributeDecoder& attributes);

}  // namespace forerun
