// The records of a data set as rows: what `forerun data list` and `forerun data export` show, as text, JSON and CSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ingest/capture/op_sample.h"
#include "ingest/capture/run_record.h"
#include "records/measured_bound.h"

namespace forerun {

// `list`: a line of text, a JSON object or a CSV row a run record. Lines end without "\n".
std::string list_heading();
std::string list_line(const RunRecord& record);
std::string list_json(const RunRecord& record);
std::string list_csv_heading();
std::string list_csv(const RunRecord& record);

// `export`: a CSV row a run, an op of a run, or a sample.
std::string runs_csv_heading();
std::string runs_csv(const RunRecord& record);
std::string ops_csv_heading();
std::string ops_csv(const RunRecord& record, OpId op);
std::string samples_csv_heading();
std::string samples_csv(const OpSample& sample);

}  // namespace forerun
