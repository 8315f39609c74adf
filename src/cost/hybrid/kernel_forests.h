// The forests of one kind of kernel, and the same before they are unpacked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/packed_sections.h"
#include "base/result.h"
#include "cost/trees/forest.h"

namespace forerun::hybrid {

struct KernelForests {
  Forest time;
  Forest kernels;
  Forest span;  // empty where kernels do not overlap
};

std::string to_bytes(const KernelForests& forests);
Result<KernelForests> forests_from_bytes(std::string_view bytes);

// A model asks few kinds of kernels: forests are unpacked when the first op of their kind is, from whichever thread. Copies
// share them.
class DeferredForests {
 public:
  DeferredForests() : DeferredForests(KernelForests()) {}
  explicit DeferredForests(KernelForests forests);
  // A section of a file whose checksums hold: what it has was written by `to_bytes`.
  DeferredForests(PackedSections file, std::string section);

  [[nodiscard]] const KernelForests& get() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace forerun::hybrid
