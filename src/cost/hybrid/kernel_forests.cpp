#include "cost/hybrid/kernel_forests.h"

#include <mutex>

#include "cost/hybrid/op_features.h"

namespace forerun::hybrid {

std::string to_bytes(const KernelForests& forests) {
  std::string bytes;
  for (const Forest* forest : {&forests.time, &forests.kernels, &forests.span}) forest->write_by_level(bytes);
  return bytes;
}

Result<KernelForests> forests_from_bytes(std::string_view bytes) {
  constexpr const char* kRemedy = "train it again with `forerun train hybrid`";
  KernelForests forests;
  for (Forest* forest : {&forests.time, &forests.kernels, &forests.span}) {
    Result<Forest> read = Forest::read_by_level(bytes);
    if (!read) return read.error();
    if (read->columns() > kColumns) {
      return Error{"the hybrid cost model asks for columns that ops do not have", "", kRemedy};
    }
    *forest = std::move(*read);
  }
  if (!bytes.empty()) return Error{"the hybrid cost model goes on behind its end", "", kRemedy};
  return forests;
}

struct DeferredForests::State {
  std::once_flag unpacked;
  PackedSections file;
  std::string section;  // empty: there is nothing to unpack
  KernelForests forests;
};

DeferredForests::DeferredForests(KernelForests forests) : state_(std::make_shared<State>()) {
  state_->forests = std::move(forests);
}

DeferredForests::DeferredForests(PackedSections file, std::string section) : state_(std::make_shared<State>()) {
  state_->file = std::move(file);
  state_->section = std::move(section);
}

const KernelForests& DeferredForests::get() const {
  State& state = *state_;
  std::call_once(state.unpacked, [&] {
    if (state.section.empty()) return;
    const Result<std::string> bytes = state.file.unpack(state.section);
    CHECK(bytes.ok(), bytes.error().message());
    Result<KernelForests> forests = forests_from_bytes(*bytes);
    CHECK(forests.ok(), forests.error().message());
    state.forests = std::move(*forests);
  });
  return state.forests;
}

}  // namespace forerun::hybrid
