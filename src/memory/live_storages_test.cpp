#include "memory/live_storages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "graph/graph_builder.h"
#include "ingest/capture/run_record.h"
#include "memory/allocator_settings.h"

namespace forerun {
namespace {

struct SmallIteration {
  GraphBuilder builder;

  TensorId storage(int64_t bytes, Root root = Root::none, bool on_gpu = true) {
    const StorageId id = builder.add_storage(Bytes(bytes), on_gpu);
    if (root != Root::none) builder.mark_root(id, root, "root");
    return builder.add_tensor(id, DType::uint8, Shape{bytes});
  }
  OpId op(std::string_view name, Phase phase, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    return builder.add_op({.name = name, .phase = phase, .inputs = inputs, .outputs = outputs});
  }
  void free(TensorId tensor, size_t before) {
    builder.mark_freed(builder.graph().tensor(tensor).storage, OpId(before));
  }
  MemoryEstimate estimate() { return live_storages(builder.finish()); }
};

Bytes sum_of_live_parts(const MemoryEstimate& e) {
  return e.parameters + e.buffers + e.optimizer_state + e.inputs + e.gradients + e.activations + e.temporaries +
         e.workspaces;
}

TEST(LiveStorages, FollowsBirthsAndDeaths) {
  SmallIteration it;
  const TensorId weight = it.storage(3 * kMebibyte, Root::parameter);
  const TensorId state = it.storage(2 * kMebibyte, Root::state);
  const TensorId x = it.storage(1 * kMebibyte, Root::input);
  const TensorId a = it.storage(10 * kMebibyte);
  const TensorId b = it.storage(20 * kMebibyte);
  const TensorId gradient = it.storage(3 * kMebibyte);
  it.op("aten.relu.default", Phase::forward, {x, weight}, {a});
  it.op("aten.neg.default", Phase::forward, {a}, {b});
  it.op("aten.neg.default", Phase::backward, {b}, {gradient});
  it.op("aten._fused_sgd_.default", Phase::update, {weight, state, gradient}, {});
  it.free(a, 2);
  it.free(b, 3);
  const MemoryEstimate e = it.estimate();
  EXPECT_EQ(e.peak_allocated, Bytes(36 * kMebibyte)) << "a and b are live together at op 1";
  EXPECT_EQ(e.peak_op, OpId(1));
  EXPECT_EQ(e.parameters, Bytes(3 * kMebibyte));
  EXPECT_EQ(e.optimizer_state, Bytes(2 * kMebibyte));
  EXPECT_EQ(e.inputs, Bytes(1 * kMebibyte));
  EXPECT_EQ(e.activations, Bytes(30 * kMebibyte));
  EXPECT_EQ(e.gradients, Bytes(0));
  EXPECT_EQ(sum_of_live_parts(e), e.peak_allocated);
  EXPECT_GE(e.peak_reserved, e.peak_allocated);
}

TEST(LiveStorages, CountsGradientsThatStay) {
  SmallIteration it;
  const TensorId weight = it.storage(8 * kMebibyte, Root::parameter);
  const TensorId gradient = it.storage(8 * kMebibyte);
  const TensorId copy = it.storage(8 * kMebibyte);
  it.op("aten.neg.default", Phase::backward, {weight}, {gradient});
  it.op("aten.add.Tensor", Phase::update, {gradient}, {copy});
  it.free(copy, 2);
  const MemoryEstimate e = it.estimate();
  EXPECT_EQ(e.peak_allocated, Bytes(24 * kMebibyte));
  EXPECT_EQ(e.gradients, Bytes(8 * kMebibyte));
  EXPECT_EQ(e.temporaries, Bytes(8 * kMebibyte));
}

TEST(LiveStorages, RoundsAndLeavesOutTheHost) {
  SmallIteration it;
  const TensorId x = it.storage(1, Root::input);
  const TensorId host = it.storage(100 * kMebibyte, Root::input, false);
  const TensorId empty = it.storage(0);
  const TensorId y = it.storage(513);
  it.op("aten.relu.default", Phase::forward, {x, host}, {y, empty});
  const MemoryEstimate e = it.estimate();
  EXPECT_EQ(e.peak_allocated, Bytes(512 + 1024));
  EXPECT_EQ(e.peak_reserved, Bytes(2 * kMebibyte));
}

TEST(LiveStorages, ReservesSegmentsByPool) {
  SmallIteration it;
  it.storage(kMebibyte, Root::buffer);           // small pool: one segment of 2 MiB
  it.storage(kMebibyte + 1, Root::buffer);       // shared segment of 20 MiB
  it.storage(50 * kMebibyte + 1, Root::buffer);  // its own, in steps of 2 MiB
  EXPECT_EQ(it.estimate().peak_reserved, Bytes((2 + 20 + 52) * kMebibyte));
}

TEST(LiveStorages, HoldsCublasWorkspacesThroughout) {
  const auto peak = [](std::string_view forward, std::string_view backward) {
    SmallIteration it;
    const TensorId x = it.storage(512, Root::input);
    it.op("aten.relu.default", Phase::forward, {x}, {it.storage(1024)});
    it.op(forward, Phase::forward, {x}, {x});
    it.op(backward, Phase::backward, {x}, {x});
    return it.estimate().workspaces;
  };
  EXPECT_EQ(peak("aten.neg.default", "aten.neg.default"), Bytes(0));
  EXPECT_EQ(peak("aten.mm.default", "aten.neg.default"), Bytes(32 * kMebibyte));
  EXPECT_EQ(peak("aten.mm.default", "aten.bmm.default"), Bytes(64 * kMebibyte));
  EXPECT_EQ(peak("aten.addmm.default", "aten.mm.default"), Bytes(65 * kMebibyte));
}

TEST(LiveStorages, AddsGradientsInPlaceWhereTheFirstTermDies) {
  const auto peak = [](size_t freed_before, Phase phase) {
    SmallIteration it;
    const TensorId x = it.storage(512, Root::input);
    const TensorId a = it.storage(kMebibyte);
    const TensorId b = it.storage(kMebibyte);
    const TensorId sum = it.storage(kMebibyte);
    it.op("aten.neg.default", phase, {x}, {a});
    it.op("aten.neg.default", phase, {x}, {b});
    it.op("aten.add.Tensor", phase, {a, b}, {sum});
    it.op("aten.neg.default", phase, {x}, {x});
    it.free(a, freed_before);
    it.free(b, 4);
    return it.estimate().peak_allocated.value - 512;
  };
  EXPECT_EQ(peak(3, Phase::backward), 2 * kMebibyte);
  EXPECT_EQ(peak(4, Phase::backward), 3 * kMebibyte);
  EXPECT_EQ(peak(3, Phase::forward), 3 * kMebibyte);
}

TEST(LiveStorages, CountsUnnamedConstantsFromTheStart) {
  SmallIteration it;
  const TensorId mask = it.storage(4 * kMebibyte);
  const TensorId y = it.storage(512);
  it.op("aten.neg.default", Phase::forward, {}, {y});
  it.op("aten.add.Tensor", Phase::forward, {y, mask}, {y});
  it.free(mask, 2);
  EXPECT_EQ(it.estimate().peak_allocated, Bytes(4 * kMebibyte + 512));
  EXPECT_EQ(live_storages(GraphBuilder().finish()).peak_allocated, Bytes(0));
}

struct ErrorStatistics {
  std::vector<double> errors;  // prediction / measurement - 1
  void add(Bytes predicted, Bytes measured) {
    errors.push_back(static_cast<double>(predicted.value) / static_cast<double>(measured.value) - 1);
  }
  [[nodiscard]] double mean() const {
    return std::accumulate(errors.begin(), errors.end(), 0.0, [](double sum, double e) { return sum + std::abs(e); }) /
           static_cast<double>(errors.size());
  }
  [[nodiscard]] double median() const {
    std::vector<double> sizes;
    for (const double e : errors) sizes.push_back(std::abs(e));
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2), sizes.end());
    return sizes[sizes.size() / 2];
  }
};

TEST(LiveStorages, ComesNearTheMeasuredPeaks) {
  const std::string path = FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst";
  auto reader = RunRecordReader::open(path, Fields::inputs_and_measurements);
  ASSERT_TRUE(reader.ok());
  ErrorStatistics allocated;
  ErrorStatistics reserved;
  while (true) {
    const auto record = reader->next();
    ASSERT_TRUE(record.ok()) << record.error().message();
    if (!record->has_value()) break;
    const MemoryEstimate e = live_storages((*record)->run.graph);
    EXPECT_EQ(sum_of_live_parts(e), e.peak_allocated) << (*record)->run.id;
    allocated.add(e.peak_allocated, (*record)->measured->peak_allocated);
    reserved.add(e.peak_reserved, (*record)->measured->peak_reserved);
    EXPECT_LT(allocated.errors.back(), 0.01)
        << (*record)->run.id << ": what is live is never less than what is counted";
  }
  std::printf("peak allocated: mean error %.1f %%, median %.1f %%; peak reserved: mean %.1f %%, median %.1f %%\n",
              100 * allocated.mean(), 100 * allocated.median(), 100 * reserved.mean(), 100 * reserved.median());
  EXPECT_LT(allocated.mean(), 0.06);
  EXPECT_LT(allocated.median(), 0.02);
  EXPECT_LT(reserved.mean(), 0.25);
}

}  // namespace
}  // namespace forerun
