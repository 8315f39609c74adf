// Can every record of this data set be used?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "records/data_scan.h"

namespace forerun {

struct DataCheck {
  int64_t files = 0;
  int64_t unreadable = 0;  // files that break off or cannot be read
  int64_t empty = 0;       // files that hold no record, not even a broken one
  int64_t runs = 0;        // good ones
  int64_t samples = 0;
  int64_t broken = 0;
  int64_t torn = 0;
  int64_t warnings = 0;

  [[nodiscard]] bool good() const { return broken == 0 && unreadable == 0 && empty == 0; }
};

// Reads everything that records hold and checks it: the graph verifies, tensors lie inside their storages and are not
// used after they are freed, kernels name ops that exist, times and sizes make sense, and the allocator's events fit
// together. Repeated ids are warnings. What is found goes to `problem`, a file that cannot be read or that holds no record
// to `unreadable`; the other files go on. The only Error is that of `control`.
Result<DataCheck> check_data(const std::vector<std::string>& files,
                             const std::function<void(const DataProblem&)>& problem,
                             const std::function<void(const Error&)>& unreadable, const WorkControl& control = {});

// What is wrong with the measured values of a record that was read; empty if nothing is.
std::string implausible(const RunRecord& record);

}  // namespace forerun
