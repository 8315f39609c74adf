// What `forerun trace` found, as text, JSON and CSV, and as an annotated Chrome trace.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/trace_analysis.h"

namespace forerun {

struct TraceReportOptions {
  size_t top = 10;  // rows of each list
};

// Sentences on what the reader should know: events skipped, kernels without launch, no communication where there should be.
std::vector<std::string> warnings_of(const TraceAnalysis& analysis);

std::string to_text(const TraceAnalysis& analysis, const TraceReportOptions& options);
std::string to_json(const TraceAnalysis& analysis, const TraceReportOptions& options);  // one line
std::string to_csv(const TraceAnalysis& analysis);  // rank, section, name, count, gpu_us, host_us, share

std::string to_text(const TraceChanges& changes, const TraceReportOptions& options);
// Both analyses and what changed between them, one line.
std::string to_json(const TraceAnalysis& before, const TraceAnalysis& after, const TraceChanges& changes,
                    const TraceReportOptions& options);
std::string to_csv(const TraceChanges& changes);

// A kernel's name without template arguments and parameters, for tables: "vectorized_elementwise_kernel<4, FillFunctor...".
std::string short_name(const std::string& name, size_t most);

}  // namespace forerun
