// What a generated kernel computes for every element of its loops, beside reading and writing.
//
// Additions and products hide behind memory. A random number (Philox: ten rounds of integer products), an error function, an
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
  int64_t adds = 0;     // of the whole kernel: elements added into rows, where others add too
  int64_t crowded = 0;  // the same, where neighbouring threads meet (Node::crowded)

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

Arithmetic arithmetic_of(const Graph& eager, const JointGraph& joint, const Kernel& kernel);

}  // namespace forerun::compile
