#include "predict/memory_text.h"

namespace forerun {

Result<MemoryQuestion> parse_memory(const MemoryText& text) {
  MemoryQuestion question;
  const Result<AllocatorSettings> settings = parse_allocator_settings(text.allocator);
  if (!settings) return settings.error();
  question.allocator = *settings;
  question.allocator_text = text.allocator;
  const bool parallel = text.ddp || text.zero > 0;
  if (text.gpus > 0 && !parallel) {
    return Error{"several GPUs take a way to share the work", "--gpus", "add --ddp, or --zero 1, 2 or 3"};
  }
  if (text.bucket_views && (!parallel || text.zero > 1)) {
    return Error{"only DDP has gradient buckets", "--bucket-view", "add --ddp or --zero 1"};
  }
  if (text.ddp && text.zero > 1) {
    return Error{"FSDP takes the place of DDP", "--ddp, --zero", "give one of them"};
  }
  if (parallel) {
    question.parallel = {.gpus = text.gpus > 0 ? text.gpus : 8,
                         .replicas = text.ddp || text.zero == 1,
                         .bucket_views = text.bucket_views,
                         .zero = text.zero};
  }
  return question;
}

}  // namespace forerun
