// Rules: how each ONNX op becomes ops of PyTorch. Adding an op is one function and one line in the list of its file.
#pragma once

#include <span>
#include <string_view>

#include "ingest/onnx/translation.h"

namespace forerun::ingest {

struct Rule {
  std::string_view type;
  // Translates the node; false: this form of it is beyond the rule, and it is carried as opaque.
  bool (*translate)(Node& node);
  size_t outputs = 1;  // a node whose further outputs are used is opaque
};

std::span<const Rule> layer_rules();        // rules_layers.cpp: convolutions, products, norms, pooling, dropout
std::span<const Rule> recurrent_rules();    // rules_recurrent.cpp
std::span<const Rule> elementwise_rules();  // rules_elementwise.cpp
std::span<const Rule> shape_rules();        // rules_shape.cpp: views, joins, splits, padding
std::span<const Rule> index_rules();        // rules_index.cpp: reductions, indexing, creation, resizing

// The rule of an op of ONNX's own domain, or null.
const Rule* find_rule(std::string_view type);

// Computes the node where it only depends on constants and shapes (Shape, Constant, arithmetic on small constants).
// True: its outputs are set, and it leaves no op.
bool fold(Node& node);

}  // namespace forerun::ingest
