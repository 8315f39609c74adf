#include "scale/stages.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun::scale {
namespace {

int64_t time_of(const Block& block) {
  return (block.forward + block.backward + block.forward_exchange + block.backward_exchange).value;
}

std::vector<BlockRange> deal_layers(size_t blocks, size_t first, size_t layers, int64_t stages) {
  const size_t each = layers / static_cast<size_t>(stages);
  std::vector<BlockRange> ranges(static_cast<size_t>(stages));
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i] = {first + i * each, first + (i + 1) * each};
  ranges.front().begin = 0;
  ranges.back().end = blocks;
  return ranges;
}

// Whether stages of at most `most` suffice; fills `ranges` greedily.
bool fits_in(std::span<const Block> blocks, int64_t stages, int64_t most, std::vector<BlockRange>& ranges) {
  ranges.clear();
  size_t begin = 0;
  int64_t sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t time = time_of(blocks[i]);
    const auto left = static_cast<int64_t>(blocks.size() - i);                 // blocks from here on
    const int64_t to_open = stages - static_cast<int64_t>(ranges.size()) - 1;  // stages after the one being filled
    if (i > begin && (sum + time > most || left <= to_open)) {
      ranges.push_back({begin, i});
      begin = i;
      sum = 0;
    }
    sum += time;
    if (sum > most) return false;
  }
  ranges.push_back({begin, blocks.size()});
  return static_cast<int64_t>(ranges.size()) == stages;
}

}  // namespace

Result<std::vector<BlockRange>> cut_into_stages(std::span<const Block> blocks, int64_t stages) {
  const auto is_layer = [](const Block& block) { return block.layer; };
  const auto first = std::find_if(blocks.begin(), blocks.end(), is_layer);
  const auto layers = std::count_if(blocks.begin(), blocks.end(), is_layer);
  if (layers > 0 && layers % stages == 0) {
    return deal_layers(blocks.size(), static_cast<size_t>(first - blocks.begin()), static_cast<size_t>(layers), stages);
  }
  if (static_cast<int64_t>(blocks.size()) < stages) {
    return Error{fmt::format("{} blocks cannot be cut into {} stages", blocks.size(), stages), "pipeline parallelism",
                 fmt::format("choose at most pp={}", blocks.size())};
  }
  int64_t low = 0;
  int64_t high = 0;
  for (const Block& block : blocks) high += time_of(block);
  std::vector<BlockRange> ranges;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fits_in(blocks, stages, middle, ranges)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  fits_in(blocks, stages, low, ranges);
  return ranges;
}

}  // namespace forerun::scale
