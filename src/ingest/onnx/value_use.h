// How the nodes of a graph use each value: it decides whether an initializer is a parameter, a buffer or a setting.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/onnx/dataflow.h"

namespace forerun::ingest {

enum ValueUse : uint8_t {
  kOperand = 1,           // an ordinary operand
  kSetting = 2,           // axes, sizes, scales, limits
  kStatistic = 4,         // running mean or variance of a batch norm
  kProductWeight = 8,     // second factor of a MatMul
  kRecurrentWeight = 16,  // W or R of LSTM, GRU, RNN
  kRecurrentBias = 32,    // B of LSTM, GRU, RNN
};

// By value: the uses, or'ed. A use of an Identity's result is one of its input.
std::vector<uint8_t> value_uses(const onnx::GraphProto& graph, const Dataflow& flow);

}  // namespace forerun::ingest
