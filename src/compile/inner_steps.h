// How many operations Inductor counts in the function that computes an element of an elementwise op, and whether several of them look at
// the same input.
//
// What takes many is stored instead of being computed within its readers, and so is what is looked at again. Counted as OpCounterCSE
// of torch/_inductor/ops_handler.py does, in the ops that torch/_inductor/decomposition.py and torch/_decomp make of it (PyTorch 2.11);
// constants count, reads are counted where they are known (fusion.cpp).
#pragma once

#include <cstddef>
#include <string_view>

#include "graph/graph.h"

namespace forerun::compile {

struct InnerSteps {
  int count = 1;
  bool looks_again = false;  // at what the activation is of: its first input, of its gradient the second
};

// `base`: the op's name without namespace and overload; `inputs`: tensors that it reads; `by_tanh`: a GELU that is approximated so.
InnerSteps inner_steps(std::string_view base, size_t inputs, bool by_tanh);

// Of a pooling layer: elements of a window; of its gradient, windows that an element was in. 0: it is none.
int window_looks(std::string_view base, const Attributes& attributes);

}  // namespace forerun::compile
