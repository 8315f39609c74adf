// What is asked of a run's memory, as users say it: the allocator's settings and data-parallel training.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "predict/predicted_memory.h"

namespace forerun {

struct MemoryText {
  std::string allocator;  // "expandable_segments:True"
  bool ddp = false;
  bool bucket_views = false;
  int zero = 0;
  int64_t gpus = 0;  // 0: not given
};

Result<MemoryQuestion> parse_memory(const MemoryText& text);

}  // namespace forerun
