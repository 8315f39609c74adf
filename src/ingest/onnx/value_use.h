// How the nodes of a graph use each value: it decides whether a tensor that the file gives is a parameter, a buffer,
// a setting or a number.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/onnx/dataflow.h"

namespace forerun::ingest {

enum ValueUse : uint8_t {
  kOperand = 1,           // an ordinary operand
  kSetting = 2,           // axes, sizes, scales, limits, and what only those are computed from
  kStatistic = 4,         // running mean or variance of a batch norm
  kProductWeight = 8,     // second factor of a MatMul
  kRecurrentWeight = 16,  // W or R of LSTM, GRU, RNN
  kRecurrentBias = 32,    // B of LSTM, GRU, RNN
  kLayerWeight = 64,      // weight or bias of another layer: convolution, Gemm, norm, embedding, PRelu
  kArithmetic = 128,      // operand of elementwise arithmetic
};
constexpr uint8_t kWeightUses = kProductWeight | kRecurrentWeight | kRecurrentBias | kLayerWeight;

// By value: the uses, or'ed. A use of an Identity's result is one of its input; what only regroups elements (Reshape,
// Transpose, Cast, Concat, ...) makes its input a weight where its result is one.
std::vector<uint8_t> value_uses(const onnx::GraphProto& graph, const Dataflow& flow);

// How a file gives a value: ConstantOfShape stands for weights in files that were stripped of them.
enum class GivenBy : uint8_t { initializer, constant, constant_of_shape, node };

// Where a file keeps the weights of its layers. A floating tensor that only arithmetic reads is a parameter (a bias, a
// scale, a table of positions) where it is kept like most of the weights, else a number of the program (a mask).
struct WeightPlaces {
  int64_t initializers = 0;  // floating ones in the place of a weight
  int64_t constants = 0;
  int64_t constants_of_shape = 0;

  [[nodiscard]] bool in(GivenBy giver) const;
};
GivenBy given_by(const onnx::GraphProto& graph, const Dataflow& flow, ValueIndex value);
WeightPlaces weight_places(const onnx::GraphProto& graph, const Dataflow& flow, const std::vector<uint8_t>& uses);

}  // namespace forerun::ingest
