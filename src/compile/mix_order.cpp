#include "compile/mix_order.h"

#include <algorithm>
#include <bit>

#include "compile/split_rule.h"

namespace forerun::compile {
namespace {

constexpr int64_t kCached = 5 << 20;  // elements; less than that stays in the cache
constexpr int64_t kLeastRows = 4096;
constexpr int64_t kMostColumns = 16'384;  // that one block holds at once
constexpr int64_t kBlocksEach = 8;        // of a multiprocessor

}  // namespace

bool takes_along(int64_t rows, int64_t columns) {
  return rows >= kLeastRows && rows >= 2 * columns && columns <= kMostColumns && rows * columns >= kCached;
}

int64_t row_blocks(int64_t rows) {
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(rows / (kMultiprocessors * kBlocksEach), 1));
  const int64_t each = std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(wanted)), 16, 128);
  return (rows + each - 1) / each;
}

}  // namespace forerun::compile
