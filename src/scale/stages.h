// Which blocks of a model each stage of a pipeline holds.
//
// Equal layers are dealt out evenly, with what comes before them in the first and what comes after in the last stage,
// as Megatron does; any other model is cut so that the slowest stage is as fast as can be.
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

// `stages` ranges that cover all blocks in order. An Error where the layers cannot be dealt out.
Result<std::vector<BlockRange>> cut_into_stages(std::span<const Block> blocks, int64_t stages);

}  // namespace forerun::scale
