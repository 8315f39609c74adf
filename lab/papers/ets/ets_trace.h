// EtsTraceReader: the traces that the authors of ETS published, CSV files of ops (plain, gzip or Zstandard).
//
//   trace,op,dir,params,grid,block,flops,bytes,kStartTime,kEndTime,staticSharedMemory,space,space1,seq,kernels,rduration,kduration,batch,h,input_type
//   resnet34.82,203,1,16|3|16|16|64|8|8|7|7|3|3|2|2|1|1|1|4,16,256,19267584.0,348928.0,0,81154,5376,137221,131396,150257,2,24220,75329,16,16,1
//
// Columns are found by name, in any order; those that are not needed may be missing or hold anything. The rows of a trace
// stand together. Rows of the optimizer (seq = -1) are left out: the paper's label is forward and backward,
// the sum of GPU time and gap over the other rows. Gaps below 0 count as 0.
// A broken row is an Error that names its line, after which nothing follows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_reader.h"
#include "base/result.h"
#include "graph/graph.h"

namespace forerun {

struct EtsOp {
  static constexpr size_t kParameters = 30;

  int32_t type = 0;  // the authors' number of the kind of op
  Phase phase = Phase::forward;
  DType dtype = DType::float32;
  double flops = 0;
  double bytes = 0;
  std::array<float, kParameters> parameters = {};  // the first 30; missing ones are 0
  double gpu_us = 0;
  double gap_us = 0;  // idle time of the GPU within and behind the op
};

struct EtsTrace {
  std::string id;     // "resnet34.82"
  std::string model;  // "resnet34"
  double batch = 0;
  double height = 0;
  std::vector<EtsOp> ops;

  [[nodiscard]] double iteration_ms() const {
    double us = 0;
    for (const EtsOp& op : ops) us += op.gpu_us + op.gap_us;
    return us / 1000;
  }
};

class EtsTraceReader {
 public:
  static Result<EtsTraceReader> open(const std::string& path);
  static Result<EtsTraceReader> from_text(std::string_view text, const std::string& name);

  // The next trace; nothing at the end. Traces without ops (of the optimizer alone) are passed over.
  Result<std::optional<EtsTrace>> next();

 private:
  enum Column : size_t {
    kTrace,
    kOp,
    kDirection,
    kParameters,
    kFlops,
    kBytes,
    kSpace,
    kSequence,
    kDuration,
    kBatch,
    kHeight,
    kType,
    kColumns
  };
  struct Row {
    std::string trace;
    double batch = 0;
    double height = 0;
    bool optimizer = false;
    EtsOp op;
  };

  explicit EtsTraceReader(LineReader lines) : lines_(std::move(lines)) {}
  static Result<EtsTraceReader> start(LineReader lines);
  Status read_heading();
  Result<std::optional<Row>> next_row();
  Result<Row> parse(std::string_view line) const;
  [[nodiscard]] Error fault(const std::string& what) const;

  LineReader lines_;
  std::array<size_t, kColumns> columns_ = {};  // where each stands in a line
  size_t width_ = 0;                           // columns of a line
  std::optional<Row> ahead_;                   // the first row of the next trace
  bool ended_ = false;
};

}  // namespace forerun
