// What generated kernels compute: masks are drawn once, in the forward pass; what is inlined counts where it is inlined.
#include "compile/arithmetic.h"

#include <gtest/gtest.h>

#include <string>

#include "compile/compiled_iteration.h"
#include "derive/dispatch.h"
#include "derive/iteration.h"
#include "zoo/zoo.h"

namespace forerun::compile {
namespace {

// How many kernels of a pass compute something.
int64_t kernels_with(const std::string& model, Phase phase, const char* what) {
  const Result<zoo::Model> built = zoo::build(model, {{"layers", "2"}, {"batch", "2"}, {"length", "128"}});
  EXPECT_TRUE(built.ok()) << (built.ok() ? "" : built.error().what);
  const Result<Graph> eager =
      derive::derive_iteration(built->forward, built->input, {.precision = Precision::amp_bf16}, {});
  EXPECT_TRUE(eager.ok()) << (eager.ok() ? "" : eager.error().what);
  const Result<CompiledIteration> compiled = compiled_iteration(*eager, true);
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().what);
  int64_t found = 0;
  for (const Op& op : compiled->graph.ops()) {
    if (op.phase == phase && compiled->graph.attributes(op).get_int(what, 0) > 0) ++found;
  }
  return found;
}

TEST(Arithmetic, MasksAreDrawnInTheForwardPassAlone) {
  EXPECT_GE(kernels_with("gpt2_small", Phase::forward, "random"), 5);  // the embedding's, and two of every layer
  EXPECT_EQ(kernels_with("gpt2_small", Phase::backward, "random"), 0);
}

TEST(Arithmetic, ActivationsCountInBothPasses) {
  EXPECT_GE(kernels_with("bert_base", Phase::forward, "erf"), 2);
  EXPECT_GE(kernels_with("bert_base", Phase::backward, "erf"), 2);
  EXPECT_GE(kernels_with("llama", Phase::backward, "exp"), 2);
  EXPECT_GE(kernels_with("llama", Phase::forward, "exp"), 2);  // within the product with what is gated
}

}  // namespace
}  // namespace forerun::compile
