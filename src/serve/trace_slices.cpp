#include "serve/trace_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/trace.h"
#include "ask/question.h"

namespace forerun::serve {
namespace {

constexpr int64_t kMostPixels = 8192;

}  // namespace

Result<std::string> TraceSlicer::answer(const std::string& words) {
  auto question = ask::Question::parse(words);
  if (!question) return question.error();
  const std::string file = question->needed("file", "give the upload");
  const auto from = question->whole("from", 0, int64_t{1} << 60);
  const auto to = question->whole("to", 0, int64_t{1} << 60);
  const int64_t px = question->whole("px", 1, kMostPixels).value_or(1000);
  if (const Status status = question->status(); !status.ok()) return status.error();
  const Trace* trace = traces_.find(file);
  if (trace == nullptr) {
    kept_.reset();
    const auto files = trace_files({file}, "replay");  // what has a timeline
    if (!files) return files.error();
    const auto read = traces_.read({*files}, /*partial=*/false, {});
    if (!read) return read.error();
    trace = read->front().data();
  }
  if (!kept_ || kept_->file != file) kept_.emplace(Kept{file, TimelineRows(*trace)});
  const int64_t length = kept_->rows.length();
  const TimelineStretch stretch{from.value_or(0), std::min(to.value_or(length), length), px};
  if (stretch.from >= stretch.to && length > 0) {
    return Error{"there is nothing between these times", "from, to", fmt::format("the trace has 0 to {} ns", length)};
  }
  return timeline_json(*trace, kept_->rows, stretch);
}

}  // namespace forerun::serve
