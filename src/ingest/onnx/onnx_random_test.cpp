// Random graphs of every op: a model that holds together, or an Error that names the place.
#include <gtest/gtest.h>

#include "base/test_rounds.h"
#include "graph/graph.h"
#include "ingest/onnx/onnx_random_model.h"

namespace forerun::ingest {
namespace {

TEST(OnnxRandom, EveryOpWithAnything) {
  const std::vector<std::string> types = all_op_types();
  uint32_t sound = 0;
  for (uint32_t seed = 0; seed < test_rounds(20000); ++seed) {
    SCOPED_TRACE(seed);
    const auto model = RandomModel(seed).make(types).read({.batch = seed % 2 == 0 ? 2 : 0});
    if (model) {
      ++sound;
      ASSERT_TRUE(verify(model->forward).ok()) << verify(model->forward).error().message();
    } else {
      ASSERT_FALSE(model.error().remedy.empty()) << model.error().message();
      ASSERT_NE(model.error().where.find("test.onnx"), std::string::npos) << model.error().message();
    }
  }
  EXPECT_GT(sound, test_rounds(200)) << "too few of the random models are sound to show anything";
}

TEST(OnnxRandom, OneOpWithAnything) {
  for (const std::string& type : all_op_types()) {
    for (uint32_t seed = 0; seed < test_rounds(200); ++seed) {
      SCOPED_TRACE(type + " " + std::to_string(seed));
      const auto model = RandomModel(seed).make({type}).read();
      if (model) {
        ASSERT_TRUE(verify(model->forward).ok()) << verify(model->forward).error().message();
      }
    }
  }
}

}  // namespace
}  // namespace forerun::ingest
