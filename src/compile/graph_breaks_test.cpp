// Where graphs break: the pieces of small iterations by hand.
#include "compile/graph_breaks.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "graph/graph_builder.h"

namespace forerun::compile {
namespace {

// A chain of ops, each on the result of the one before it.
struct Chain {
  GraphBuilder build;
  Round round{.first = 0, .end = 0, .places = {}};
  TensorId last = tensor(64);

  TensorId tensor(int64_t elements) {
    const int64_t shape[] = {elements};
    return build.add_tensor(build.add_storage(Bytes(4 * elements)), DType::float32, shape);
  }
  void add(std::string_view name, std::string_view module, uint32_t sequence, Phase phase, TensorId in, TensorId out,
           uint16_t piece = 0) {
    const TensorId inputs[] = {in}, outputs[] = {out};
    const size_t count = out.valid() ? 1 : 0;
    build.add_op({.name = name,
                  .phase = phase,
                  .module = module,
                  .inputs = inputs,
                  .outputs = {outputs, count},
                  .sequence = sequence,
                  .piece = piece});
    round.places.push_back(phase == Phase::forward ? Place::forward : Place::backward);
    ++round.end;
  }
  void forward(std::string_view name, std::string_view module, uint32_t sequence, uint16_t piece = 0) {
    const TensorId next = tensor(64);
    add(name, module, sequence, Phase::forward, last, next, piece);
    last = next;
  }
  void backward(std::string_view name, std::string_view module, uint32_t sequence) {
    const TensorId next = tensor(64);
    add(name, module, sequence, Phase::backward, last, next);
    last = next;
  }
  // A number is drawn, and the host reads it: both have the number of the op before them, as dispatched.
  void draw(std::string_view module, uint32_t sequence) {
    const TensorId number = tensor(1);
    build.add_op({.name = "aten.rand.default", .module = module, .outputs = {&number, 1}, .sequence = sequence});
    round.places.push_back(Place::forward);
    ++round.end;
    add("aten._local_scalar_dense.default", module, sequence, Phase::forward, number, {});
  }
  std::vector<Round> pieces(std::vector<GraphBreak>& breaks, const DynamoTrace* dynamo = nullptr) {
    graph = build.finish();
    return pieces_of(graph, round, dynamo, breaks);
  }
  Graph graph;
};

std::vector<size_t> places(const Round& round, Place place) {
  std::vector<size_t> found;
  for (size_t i = 0; i < round.places.size(); ++i) {
    if (round.places[i] == place) found.push_back(i);
  }
  return found;
}

TEST(GraphBreaks, APieceHasTheBackwardOfItsOps) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1);    // 0
  chain.draw("", 1);                               // 1, 2
  chain.forward("aten.mm.default", "second", 2);   // 3
  chain.backward("aten.mm.default", "second", 2);  // 4
  chain.backward("aten.mm.default", "first", 1);   // 5
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks);
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_EQ(breaks[0].op, "aten._local_scalar_dense.default");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(places(pieces[0], Place::forward), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(places(pieces[0], Place::backward), (std::vector<size_t>{5}));
  EXPECT_EQ(places(pieces[1], Place::forward), (std::vector<size_t>{3}));
  EXPECT_EQ(places(pieces[1], Place::backward), (std::vector<size_t>{4}));
}

// The caller's graph ends where the module begins that it breaks in, and goes on where that ends.
TEST(GraphBreaks, EndsWhereAModuleIsEnteredThatBreaks) {
  Chain chain;
  chain.forward("aten.mm.default", "head", 1);    // 0
  chain.forward("aten.mm.default", "body.a", 2);  // 1
  chain.draw("body", 2);                          // 2, 3
  chain.forward("aten.mm.default", "body.b", 3);  // 4
  chain.forward("aten.mm.default", "tail", 4);    // 5
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(breaks[0].module, "body");
  EXPECT_EQ(places(pieces[0], Place::forward), (std::vector<size_t>{0}));
  EXPECT_EQ(places(pieces[1], Place::forward), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(places(pieces[2], Place::forward), (std::vector<size_t>{4}));
  EXPECT_EQ(places(pieces[3], Place::forward), (std::vector<size_t>{5}));
}

// Backward ops whose number no forward op has, within composite ones, go with what came before them.
TEST(GraphBreaks, NumbersBetweenBelongToTheOpBefore) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1);    // 0
  chain.draw("", 1);                               // 1, 2
  chain.forward("aten.mm.default", "second", 4);   // 3
  chain.forward("aten.mm.default", "third", 9);    // 4
  chain.backward("aten.mm.default", "third", 9);   // 5
  chain.backward("aten.mul.Tensor", "second", 6);  // 6
  chain.backward("aten.mul.Tensor", "first", 3);   // 7
  chain.backward("aten.mul.Tensor", "", 99);       // 8: reads what the first piece made
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(places(pieces[0], Place::backward), (std::vector<size_t>{7, 8}));
  EXPECT_EQ(places(pieces[1], Place::backward), (std::vector<size_t>{5, 6}));
}

// What libraries look at for checks of their own is left out while they are traced.
TEST(GraphBreaks, ReadingWhatNobodyDrewIsNone) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1);
  chain.add("aten._local_scalar_dense.default", "first", 1, Phase::forward, chain.tensor(1), {});
  chain.forward("aten.mm.default", "second", 2);
  std::vector<GraphBreak> breaks;
  EXPECT_EQ(chain.pieces(breaks).size(), 1u);
  EXPECT_TRUE(breaks.empty());
}

// The layers beside a recurrent one are not compiled; a model of several layers that the same frame calls is.
TEST(GraphBreaks, AFrameThatCallsARecurrentLayerRunsEagerly) {
  Chain chain;
  chain.forward("aten.mm.default", "encoder.a", 1);      // 0
  chain.forward("aten.mm.default", "encoder.b", 2);      // 1
  chain.forward("aten._cudnn_rnn.default", "cells", 3);  // 2
  chain.forward("aten.mm.default", "out", 4);            // 3
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(places(pieces[0], Place::forward), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(breaks[0].module, "cells");
}

// A result whose size depends on values runs between two graphs.
TEST(GraphBreaks, SizesThatDependOnValuesBreak) {
  Chain chain;
  chain.forward("aten.mm.default", "", 1);
  chain.forward("aten.nonzero.default", "", 1);
  chain.forward("aten.mm.default", "", 2);
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(places(pieces[1], Place::forward), (std::vector<size_t>{2}));
  EXPECT_FALSE(breaks[0].why.empty());
}

// Dynamo's own pieces hold, whatever the ops look like; what it left out runs eagerly, with its backward ops.
TEST(GraphBreaks, PiecesAreThoseThatDynamoTraced) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1, 1);    // 0
  chain.forward("aten.relu.default", "first", 2, 2);  // 1
  chain.forward("aten.mm.default", "second", 3);      // 2: left out
  chain.forward("aten.nonzero.default", "", 3, 3);    // 3: traced, for all that it looks like
  chain.forward("aten.mm.default", "third", 4, 3);    // 4
  chain.backward("aten.mm.default", "third", 4);      // 5
  chain.backward("aten.mm.default", "second", 3);     // 6
  chain.backward("aten.relu.default", "first", 2);    // 7
  chain.backward("aten.mm.default", "first", 1);      // 8
  const DynamoTrace dynamo = {.torch = "2.13.0",
                              .problem = {},
                              .graphs = 3,
                              .breaks = {{"first", "aten.relu.default", "Failed to trace print", "net.py:7"}}};
  std::vector<GraphBreak> breaks;
  const std::vector<Round> pieces = chain.pieces(breaks, &dynamo);
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_EQ(breaks[0].where, "net.py:7");
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(places(pieces[0], Place::forward), (std::vector<size_t>{0}));
  EXPECT_EQ(places(pieces[0], Place::backward), (std::vector<size_t>{8}));
  EXPECT_EQ(places(pieces[1], Place::forward), (std::vector<size_t>{1}));
  EXPECT_EQ(places(pieces[1], Place::backward), (std::vector<size_t>{7}));
  EXPECT_EQ(places(pieces[2], Place::forward), (std::vector<size_t>{3, 4}));
  EXPECT_EQ(places(pieces[2], Place::backward), (std::vector<size_t>{5}));
}

TEST(GraphBreaks, AModelThatDynamoTracedWholeIsWhole) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1, 1);
  chain.draw("", 1);
  chain.forward("aten.mm.default", "second", 2, 1);
  for (size_t i = 1; i <= 2; ++i) chain.round.places[i] = Place::outside;  // nobody's
  const DynamoTrace dynamo = {.torch = "2.13.0", .problem = {}, .graphs = 1, .breaks = {}};
  std::vector<GraphBreak> breaks;
  EXPECT_EQ(chain.pieces(breaks, &dynamo).size(), 1u);
  EXPECT_TRUE(breaks.empty());
}

// What is behind Dynamo refuses what it traced.
TEST(GraphBreaks, ProductsOfGroupsBreakWhateverDynamoTraced) {
  Chain chain;
  chain.forward("aten.mm.default", "first", 1, 1);
  chain.forward("aten._grouped_mm.default", "experts", 2, 1);
  chain.forward("aten.mm.default", "second", 3, 1);
  const DynamoTrace dynamo = {.torch = "2.13.0", .problem = {}, .graphs = 1, .breaks = {}};
  std::vector<GraphBreak> breaks;
  EXPECT_EQ(chain.pieces(breaks, &dynamo).size(), 2u);
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_EQ(breaks[0].module, "experts");
}

}  // namespace
}  // namespace forerun::compile
