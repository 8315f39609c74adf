// Mixed orders: sums over the rows of what a kernel reduces row by row, taken in the same kernel.
//
// The backward pass of a norm reduces one gradient twice, over each row and over all rows. Where there are many more rows than columns
// and all of it is too large for the cache, one kernel does both: every block takes some rows, leaves their sums in a workspace, and a sum
// over the blocks follows for each. Rule and constants from MixOrderReduction of torch/_inductor/scheduler.py and from
// torch/_inductor/codegen/simd.py, on by default since PyTorch 2.10. Left out: other reductions than sums.
#pragma once

#include <cstdint>

namespace forerun::compile {

// Whether a reduction of each of `rows` rows of `columns` takes sums over the rows along.
bool takes_along(int64_t rows, int64_t columns);

// Blocks of rows, each of which leaves `columns` sums.
int64_t row_blocks(int64_t rows);

}  // namespace forerun::compile
