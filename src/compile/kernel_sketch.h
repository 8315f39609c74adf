// Kernels of one pass by hand, for tests.
#pragma once

#include <vector>

#include "compile/fusion.h"

namespace forerun::compile {

struct KernelSketch {
  JointGraph joint;
  std::vector<Kernel> kernels;

  ValueId given(int64_t elements) {
    joint.values.push_back({.elements = elements});
    return ValueId(joint.values.size() - 1);
  }
  // One that makes one value of float32; `over`: whether it could write over what it reads.
  ValueId kernel(const std::vector<ValueId>& reads, int64_t elements, bool over = false,
                 NodeKind kind = NodeKind::pointwise) {
    const ValueId made(joint.values.size());
    joint.values.push_back({.made_by = NodeId(joint.nodes.size()), .elements = elements});
    Node node{.kind = kind, .elements = elements, .reads = {}, .makes = {made}};
    for (const ValueId read : reads) node.reads.push_back({read, joint.value(read).elements});
    Kernel kernel{.kind = kind, .nodes = {NodeId(joint.nodes.size())}, .elements = elements};
    kernel.reads = node.reads;
    kernel.writes = {made};
    kernel.over = {over ? reads : std::vector<ValueId>{}};
    joint.nodes.push_back(std::move(node));
    kernels.push_back(std::move(kernel));
    return made;
  }
  [[nodiscard]] std::vector<bool> flags(const std::vector<ValueId>& values) const {
    std::vector<bool> flags(joint.values.size());
    for (const ValueId value : values) flags[value.value] = true;
    return flags;
  }
};

}  // namespace forerun::compile
