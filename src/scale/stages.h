// Which blocks of a model each stage of a pipeline holds.
//
// Equal layers are dealt out evenly where they divide, with what comes before them in the first and what comes after in the
// last stage, as Megatron does. Where they do not (126 layers on 16 stages), and in any other model, stages are cut so that
// the slowest is as fast as can be: the first and the last, which have the embedding and the head, then get fewer layers.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "scale/block.h"

namespace forerun::scale {

struct BlockRange {
  size_t begin = 0;
  size_t end = 0;
};

// `stages` ranges that cover all blocks in order. An Error where there are fewer blocks than stages.
Result<std::vector<BlockRange>> cut_into_stages(std::span<const Block> blocks, int64_t stages);

}  // namespace forerun::scale
