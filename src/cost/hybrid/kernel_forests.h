// The forests of one kind of kernel, and the same before they are unpacked.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/packed_sections.h"
#include "base/result.h"
#include "cost/trees/forest.h"

namespace forerun::hybrid {

struct KernelForests {
  Forest time;
  Forest kernels;
  Forest span;  // empty where kernels do not overlap
};

// What they say of one row.
struct ForestAnswer {
  float time = 0, kernels = 0, span = 0;
};

std::string to_bytes(const KernelForests& forests);
Result<KernelForests> forests_from_bytes(std::string_view bytes);

// A model asks few kinds of kernels: forests are unpacked when the first op of their kind is, from whichever thread. Where they are
// asked again, by a process that answers many questions, they are laid out for it (cost/trees/complete_forest.h), and what they said
// last is kept: questions that follow each other have many ops in common. Copies share all of it.
class DeferredForests {
 public:
  DeferredForests() : DeferredForests(KernelForests()) {}
  explicit DeferredForests(KernelForests forests);
  // A section of a file whose checksums hold: what it has was written by `to_bytes`.
  DeferredForests(PackedSections file, std::string section);

  [[nodiscard]] const KernelForests& get() const;
  // What they say of rows of kColumns values each, one behind the other; the same whatever was asked before.
  [[nodiscard]] std::vector<ForestAnswer> ask(std::span<const float> rows) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace forerun::hybrid
