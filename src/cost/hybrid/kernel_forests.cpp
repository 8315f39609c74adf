#include "cost/hybrid/kernel_forests.h"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>

#include "base/recent_results.h"
#include "cost/hybrid/op_features.h"
#include "cost/trees/complete_forest.h"

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

namespace {

constexpr size_t kMostKept = 2048;  // rows of a generation: half a megabyte

using RowKey = std::array<uint32_t, kColumns>;

// What `forest` says of the rows, by its layout where there is one.
std::vector<float> said_by(const Forest& forest, const std::optional<CompleteForest>& laid_out,
                           std::span<const float> rows, const RowBlocks& blocks) {
  return laid_out ? laid_out->predict_all(blocks) : forest.predict_all(rows, kColumns);
}

}  // namespace

struct DeferredForests::State {
  std::once_flag unpacked;
  PackedSections file;
  std::string section;  // empty: there is nothing to unpack
  KernelForests forests;

  std::atomic<bool> asked = false;
  // The three as they are asked again; nothing where trees are too deep.
  struct LaidOut {
    std::optional<CompleteForest> time, kernels, span;
  };
  std::once_flag laid;
  LaidOut laid_out;
  std::mutex keeping;
  RecentResults<ForestAnswer> recent{kColumns, kMostKept};  // guarded by keeping

  std::vector<ForestAnswer> compute(std::span<const float> rows, bool again);
};

std::vector<ForestAnswer> DeferredForests::State::compute(std::span<const float> rows, bool again) {
  std::vector<float> times, kernels, spans;
  if (again) {
    std::call_once(laid, [&] {
      laid_out = {CompleteForest::of(forests.time), CompleteForest::of(forests.kernels),
                  CompleteForest::of(forests.span)};
    });
    const RowBlocks blocks(rows, kColumns);
    times = said_by(forests.time, laid_out.time, rows, blocks);
    kernels = said_by(forests.kernels, laid_out.kernels, rows, blocks);
    spans = said_by(forests.span, laid_out.span, rows, blocks);
  } else {
    times = forests.time.predict_all(rows, kColumns);
    kernels = forests.kernels.predict_all(rows, kColumns);
    spans = forests.span.predict_all(rows, kColumns);
  }
  std::vector<ForestAnswer> answers(times.size());
  for (size_t i = 0; i < answers.size(); ++i) answers[i] = {times[i], kernels[i], spans[i]};
  return answers;
}

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

std::vector<ForestAnswer> DeferredForests::ask(std::span<const float> rows) const {
  static_cast<void>(get());
  State& state = *state_;
  const bool again = state.asked.exchange(true);
  const size_t count = rows.size() / kColumns;
  std::vector<RowKey> keys(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t column = 0; column < kColumns; ++column) {
      keys[i][column] = std::bit_cast<uint32_t>(rows[i * kColumns + column]);
    }
  }
  std::vector<ForestAnswer> answers(count);
  std::vector<size_t> unknown;
  std::vector<float> unknown_rows;
  {
    const std::lock_guard lock(state.keeping);
    for (size_t i = 0; i < count; ++i) {
      if (const auto known = state.recent.find(keys[i])) {
        answers[i] = *known;
        continue;
      }
      unknown.push_back(i);
      const std::span<const float> row = rows.subspan(i * kColumns, kColumns);
      unknown_rows.insert(unknown_rows.end(), row.begin(), row.end());
    }
  }
  if (unknown.empty()) return answers;
  const std::vector<ForestAnswer> computed = state.compute(unknown_rows, again);
  const std::lock_guard lock(state.keeping);
  for (size_t i = 0; i < unknown.size(); ++i) {
    answers[unknown[i]] = computed[i];
    state.recent.keep(keys[unknown[i]], computed[i]);
  }
  return answers;
}

}  // namespace forerun::hybrid
