#include "report/data_export.h"

#include "records/data_files.h"
#include "report/data_rows.h"

namespace forerun {

Status export_data(const std::vector<std::string>& files, ExportRows rows,
                   const std::function<Status(std::string_view)>& line,
                   const std::function<void(const DataProblem&)>& problem, const WorkControl& control) {
  Work work(control, "records");
  Status written;
  bool headed = false;
  const auto put = [&](const std::string& text) {
    if (!headed) {
      headed = true;
      written = line(rows == ExportRows::runs  ? runs_csv_heading()
                     : rows == ExportRows::ops ? ops_csv_heading()
                                               : samples_csv_heading());
    }
    if (written.ok()) written = line(text);
  };
  DataHandlers handlers;
  handlers.problem = problem;
  if (rows == ExportRows::samples) {
    handlers.sample = [&](const OpSample& sample, const DataPlace& /*place*/) { put(samples_csv(sample)); };
  } else if (rows == ExportRows::runs) {
    handlers.run = [&](const RunRecord& record, const DataPlace& /*place*/) { put(runs_csv(record)); };
  } else {
    handlers.run = [&](const RunRecord& record, const DataPlace& /*place*/) {
      for (size_t i = 0; i < record.run.graph.op_count(); ++i) put(ops_csv(record, OpId(i)));
    };
  }
  const Fields fields = rows == ExportRows::ops ? Fields::inputs_and_measurements : Fields::description;
  for (const std::string& file : files) {
    if (Status status = scan_file(file, fields, handlers, work); !status.ok()) return status;
    if (!written.ok()) break;
  }
  if (!headed) {
    return nothing_in(files, rows == ExportRows::runs  ? "iteration records"
                             : rows == ExportRows::ops ? "ops of iteration records"
                                                       : "op samples");
  }
  return written;
}

}  // namespace forerun
