// What a generated kernel computes for every element of its loops, beside reading and writing.
//
// Additions and products hide behind memory, but for those of a pooling layer's windows. A random number (Philox: ten rounds of integer products), an error function, an
// exponential or an angle does not. Nodes that a kernel takes in are computed anew for each of its elements, whatever their own
// size: Inductor inlines them.
#pragma once

#include "compile/fusion.h"
#include "compile/joint_graph.h"
#include "graph/graph.h"

namespace forerun::compile {

struct Arithmetic {
  int random = 0;  // numbers drawn
  int erf = 0;
  int exp = 0;  // and what is made of it: sigmoid, tanh
  int trig = 0;
  int norms = 0;       // that are applied with statistics from elsewhere: the root is taken anew for each element
  int looks = 0;       // at elements of a window, or of the windows that an element was in
  int looks_back = 0;  // the same of the gradient of largest elements, which compares places
  int statistics = 0;  // mean and variance taken at once of what is reduced (Welford's way, divisions and all)
  // Of the whole kernel: elements added into rows, by how they meet there (Meeting); `often_narrow`: of 16 bits.
  int64_t adds = 0;
  int64_t apart = 0;
  int64_t often = 0;
  int64_t often_narrow = 0;
  int64_t crowded = 0;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

// `pass`: the one that the kernel is of; the backward pass is handed the roots of norms.
Arithmetic arithmetic_of(const Graph& eager, const JointGraph& joint, const Kernel& kernel, Phase pass);

// As attributes of a kernel's op, what there is of it, by the names above: what cost/generated reads.
void note(const Arithmetic& work, Attributes& attributes);

}  // namespace forerun::compile
