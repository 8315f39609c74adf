#include "memory/iteration_replay.h"

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "memory/build_order.h"

namespace forerun {
namespace {

// cuBLAS takes a workspace per thread (forward, backward) at its first GEMM; cuBLASLt one of its own (addmm).
constexpr int64_t kCublasLtWorkspace = kMebibyte;

// Kernels for which Inductor has more than one configuration in every mode: it times them when they are first launched.
constexpr std::string_view kTuned = "inductor.pointwise.";

// The allocator keeps the blocks of streams apart, as it does those of private pools.
constexpr int64_t kSharedPool = 0, kPrivatePool = 1;

enum class Gemm : uint8_t { none, plain, light };

Gemm gemm_of(std::string_view name) {
  if (name == "aten.addmm.default") return Gemm::light;
  const bool plain = name == "aten.mm.default" || name == "aten.bmm.default" || name == "aten.baddbmm.default" ||
                     name == "aten.linear.default" || name == "aten.matmul.default";
  return plain ? Gemm::plain : Gemm::none;
}

class Program {
 public:
  Program(const Graph& graph, const IterationReplayOptions& options)
      : graph_(graph),
        options_(options),
        memory_(options.capacity),
        allocator_(memory_, options.settings),
        rules_(graph, options.temporaries),
        blocks_(graph.storages().size()),
        uses_(graph.storages().size(), Use::temporary),
        stays_(graph.storages().size(), false),
        of_product_(graph.storages().size(), false) {}

  IterationReplay run() {
    if (options_.cuda_graphs != nullptr) allocator_.keep_segments(kPrivatePool);
    plan();
    build();
    for (int i = 0; i < options_.warm + options_.iterations && !result_.out_of_memory; ++i) {
      if (i > 0 && i == options_.warm) forget_warming();
      iterate(i);
    }
    result_.figures = allocator_.figures();
    result_.peak.peak_reserved = Bytes(result_.figures.reserved.peak);
    return result_;
  }

 private:
  // -- what the graph says -------------------------------------------------------------------------------------------

  void plan() {
    const size_t ops = graph_.op_count();
    find_deaths();
    gradients_ = gradient_order(graph_);
    is_gradient_.resize(graph_.storages().size());
    for (const StorageId gradient : gradients_) is_gradient_[gradient.value] = true;
    first_temporary_.resize(ops + 1);
    gemms_.resize(ops);
    adds_.resize(ops);
    orders_.resize(ops);
    std::vector<Gemm> by_name(graph_.names().size(), Gemm::none);
    for (size_t name = 0; name < by_name.size(); ++name) by_name[name] = gemm_of(graph_.names()[NameId(name)]);
    const NameId add = graph_.names().find("aten.add.Tensor");
    std::vector<OpId> makers(graph_.storages().size());   // of a storage: the op that gives it out first
    std::vector<OpId> given_by(graph_.tensors().size());  // of a tensor: the op that gave it out last
    for (size_t i = 0; i < ops; ++i) {
      const Op& op = graph_.ops()[i];
      gemms_[i] = by_name[op.name.value];
      adds_[i] = op.name == add && op.input_count > 0 &&
                 (op.phase != Phase::backward || made_whole(graph_.inputs(op)[0], makers, given_by));
      for (const TensorId output : graph_.outputs(op)) {
        OpId& maker = makers[storage_of(output)];
        if (!maker.valid()) maker = OpId(i);
        given_by[output.value] = OpId(i);
      }
      if (gemms_[i] == Gemm::plain && op.output_count > 0) of_product_[storage_of(graph_.outputs(op)[0])] = true;
      orders_[i] = rules_.append(op, temporaries_);
      first_temporary_[i + 1] = temporaries_.size();
    }
  }

  // Whether a tensor is as an op made it, and no view: autograd adds to no other in place.
  [[nodiscard]] bool made_whole(TensorId tensor, const std::vector<OpId>& makers,
                                const std::vector<OpId>& given_by) const {
    const OpId maker = makers[storage_of(tensor)];
    return maker.valid() && maker == given_by[tensor.value];
  }

  // The storages that are freed before each op, and behind the last, in the order of their numbers.
  void find_deaths() {
    first_death_.assign(graph_.op_count() + 2, 0);
    for (const Storage& storage : graph_.storages()) {
      if (storage.freed_before.valid()) ++first_death_[storage.freed_before.value + 1];
    }
    std::partial_sum(first_death_.begin(), first_death_.end(), first_death_.begin());
    deaths_.resize(first_death_.back());
    std::vector<uint32_t> next(first_death_.begin(), first_death_.end() - 1);
    for (uint32_t id = 0; id < graph_.storages().size(); ++id) {
      const OpId freed = graph_.storages()[id].freed_before;
      if (freed.valid()) deaths_[next[freed.value]++] = id;
    }
  }

  void release_before(size_t op) {
    for (uint32_t i = first_death_[op]; i < first_death_[op + 1]; ++i) release(deaths_[i]);
  }

  // Parameters, buffers and inputs; and what is read before it is made, constants that the source does not name.
  void build() {
    for (const BuildStep& step : build_order(graph_)) hold_model(step);
    hold_roots(Root::input);
    hold_given();
    std::vector<bool> made(graph_.storages().size());
    for (const Op& op : graph_.ops()) {
      for (const TensorId input : graph_.inputs(op)) {
        const uint32_t storage = storage_of(input);
        const bool unnamed = graph_.storages()[storage].root == Root::none && !made[storage] && !stays_[storage];
        if (!unnamed) continue;
        stays_[storage] = true;
        hold(storage, Use::buffer);
      }
      for (const TensorId output : graph_.outputs(op)) made[storage_of(output)] = true;
    }
  }

  // Where CUDA graphs read what they are given: copies, kept with the graphs.
  void hold_given() {
    if (options_.cuda_graphs == nullptr) return;
    pool_ = kPrivatePool;
    for (const CompiledParts::Pass& pass : options_.cuda_graphs->passes) {
      for (const StorageId storage : pass.given) {
        if (graph_.storage(storage).on_gpu) take(graph_.storage(storage).bytes.value, Use::input);
      }
    }
    pool_ = kSharedPool;
  }

  void hold_model(const BuildStep& step) {
    const bool parameter = graph_.storage(step.storage).root == Root::parameter;
    for (const int64_t bytes : step.parts) taken_.push_back(take(bytes, Use::temporary));
    stays_[step.storage.value] = true;
    hold(step.storage.value, parameter ? Use::parameter : Use::buffer);
    give_back_taken();
  }

  void hold_roots(Root kind) {
    const Use use = kind == Root::state ? Use::state : Use::input;
    for (uint32_t id = 0; id < graph_.storages().size(); ++id) {
      if (graph_.storages()[id].root != kind) continue;
      stays_[id] = true;
      hold(id, use);
    }
  }

  // The program has warmed up: peaks are those of what is still to come.
  void forget_warming() {
    allocator_.empty_cache();
    allocator_.reset_peaks();
    result_.peak = {};
  }

  // -- one iteration -------------------------------------------------------------------------------------------------

  void iterate(int iteration) {
    iteration_ = iteration;
    // zero_grad: of the iteration before only gradients are left.
    bool keeps_gradients = options_.keeps_gradients;
    if (!keeps_gradients) set_gradients_to_none();
    for (uint32_t id = 0; id < blocks_.size(); ++id) {
      if (!stays_[id] && !(keeps_gradients && is_gradient_[id])) release(id);
    }
    bool updating = false;
    for (size_t i = 0; i < graph_.op_count() && !result_.out_of_memory; ++i) {
      const Op& op = graph_.ops()[i];
      op_ = OpId(i);
      if (keeps_gradients && op.phase == Phase::backward) {
        set_gradients_to_none();
        keeps_gradients = false;
      }
      release_before(i);
      if (op.phase == Phase::update && !updating) {
        updating = true;
        if (iteration == 0) hold_roots(Root::state);
      }
      pool_ = options_.cuda_graphs != nullptr && options_.cuda_graphs->inside[i] ? kPrivatePool : kSharedPool;
      run_op(i, op);
      pool_ = kSharedPool;
    }
    release_before(graph_.op_count());
    op_ = OpId();
  }

  void set_gradients_to_none() {
    for (const StorageId gradient : gradients_) release(gradient.value);
  }

  void run_op(size_t index, const Op& op) {
    if (adds_in_place(index, op)) return;
    const size_t end = first_temporary_[index + 1];
    size_t temporary = first_temporary_[index];
    const std::span<const TensorId> outputs = graph_.outputs(op);
    for (uint32_t given = 0; given < outputs.size(); ++given) {
      while (temporary < end && temporaries_[temporary].outputs_before <= given) take_temporary(temporary++);
      const uint32_t storage = storage_of(outputs[output_at(orders_[index], given, outputs.size())]);
      const OpId freed = graph_.storages()[storage].freed_before;
      const bool gone = freed.valid() && freed.value <= index;
      if (!stays_[storage] && !blocks_[storage].valid() && !gone) hold(storage, use_of_new(storage, op.phase));
    }
    while (temporary < end) take_temporary(temporary++);
    if (iteration_ == 0 && graph_.name(op).starts_with(kTuned)) tune(op);
    if (gemms_[index] != Gemm::none) take_workspaces(op, gemms_[index]);
    give_back_taken();
  }

  // Not counted as allocated: a peak that the first iteration alone has is nobody's question. What a kernel writes over is copied, so that
  // it can be run often; of backward passes only where that raises no peak.
  void tune(const Op& op) {
    if (options_.tuning_buffer.value == 0) return;
    std::vector<BlockId> blocks;
    const auto take_block = [&](Bytes bytes) {
      const BlockId block = allocator_.allocate(static_cast<uint64_t>(bytes.value), pool_);
      if (block.valid()) blocks.push_back(block);
    };
    take_block(options_.tuning_buffer);
    if (op.phase == Phase::forward) {
      for (const TensorId output : graph_.outputs(op)) {
        if (is_read_by(op, storage_of(output))) take_block(graph_.bytes_of(output));
      }
    }
    for (const BlockId block : blocks) allocator_.free(block);
  }

  [[nodiscard]] bool is_read_by(const Op& op, uint32_t storage) const {
    const std::span<const TensorId> inputs = graph_.inputs(op);
    return std::any_of(inputs.begin(), inputs.end(), [&](TensorId input) { return storage_of(input) == storage; });
  }

  void give_back_taken() {
    for (const BlockId block : taken_) {
      if (block.valid()) give_back(block, Use::temporary);
    }
    taken_.clear();
  }

  // Gradients from two places are added in the first one's memory where nothing else needs it; so is a linear layer's
  // bias to its product.
  bool adds_in_place(size_t index, const Op& op) {
    if (!adds_[index] || op.input_count < 2 || op.output_count != 1) return false;
    if (op.phase != Phase::backward && !adds_bias(op)) return false;
    const uint32_t first = storage_of(graph_.inputs(op)[0]);
    const uint32_t result = storage_of(graph_.outputs(op)[0]);
    const Storage& storage = graph_.storages()[first];
    if (storage.root != Root::none || storage.freed_before != OpId(index + 1) || blocks_[result].valid() ||
        !blocks_[first].valid() || storage.bytes != graph_.storages()[result].bytes) {
      return false;
    }
    const int64_t size = allocator_.size(blocks_[first]);
    by_use_[static_cast<size_t>(uses_[first])] -= size;
    uses_[result] = use_of_new(result, op.phase);
    by_use_[static_cast<size_t>(uses_[result])] += size;
    blocks_[result] = blocks_[first];
    blocks_[first] = {};
    if (options_.observe) tell(StorageId(result), 0, blocks_[result], uses_[result]);
    return true;
  }

  // A linear layer of a tensor with more than two dimensions, which is no longer one matrix in memory: the product, a view
  // of it, then the bias.
  [[nodiscard]] bool adds_bias(const Op& op) const {
    const auto product = graph_.shape(graph_.inputs(op)[0]);
    const auto bias = graph_.shape(graph_.inputs(op)[1]);
    return op.phase == Phase::forward && product.size() > 2 && bias.size() == 1 && bias[0] == product.back() &&
           of_product_[storage_of(graph_.inputs(op)[0])];
  }

  void take_temporary(size_t index) {
    for (uint32_t i = 0; i < temporaries_[index].frees && !taken_.empty(); ++i) {
      if (taken_.back().valid()) give_back(taken_.back(), Use::temporary);
      taken_.pop_back();
    }
    const BlockId block = take(temporaries_[index].bytes, Use::temporary);
    if (!temporaries_[index].brief) {
      taken_.push_back(block);
    } else if (block.valid()) {
      give_back(block, Use::temporary);
    }
  }

  // Taken once for each thread and kept.
  void take_workspaces(const Op& op, Gemm gemm) {
    if (op.phase == Phase::update) return;
    Workspaces& workspaces = workspaces_[static_cast<size_t>(pool_)];
    bool& taken = op.phase == Phase::forward ? workspaces.forward : workspaces.backward;
    if (!taken) take(options_.cublas_workspace.value, Use::workspace);
    taken = true;
    if (gemm != Gemm::light || op.phase != Phase::forward) return;
    if (!workspaces.light) take(kCublasLtWorkspace, Use::workspace);
    workspaces.light = true;
  }

  [[nodiscard]] Use use_of_new(uint32_t storage, Phase phase) const {
    const OpId freed = graph_.storages()[storage].freed_before;
    const bool kept = !freed.valid() || freed.value >= graph_.op_count();
    if (phase == Phase::backward && kept) return Use::gradient;
    return phase == Phase::forward ? Use::activation : Use::temporary;
  }

  // -- the allocator -------------------------------------------------------------------------------------------------

  [[nodiscard]] uint32_t storage_of(TensorId tensor) const { return graph_.tensor(tensor).storage.value; }

  void hold(uint32_t storage, Use use) {
    uses_[storage] = use;
    const Storage& held = graph_.storages()[storage];
    if (held.on_gpu) blocks_[storage] = take(held.bytes.value, use, StorageId(storage));
  }

  void release(uint32_t storage) {
    if (!blocks_[storage].valid() || stays_[storage]) return;
    give_back(blocks_[storage], uses_[storage], StorageId(storage));
    blocks_[storage] = {};
  }

  BlockId take(int64_t bytes, Use use, StorageId storage = {}) {
    if (bytes == 0 || result_.out_of_memory) return {};
    const BlockId block = allocator_.allocate(static_cast<uint64_t>(bytes), pool_);
    if (!block.valid()) {
      result_.out_of_memory = true;
      return {};
    }
    by_use_[static_cast<size_t>(use)] += allocator_.size(block);
    if (options_.observe) tell(storage, bytes, block, use);
    if (allocator_.figures().allocated.current > result_.peak.peak_allocated.value) take_peak();
    return block;
  }

  void give_back(BlockId block, Use use, StorageId storage = {}) {
    by_use_[static_cast<size_t>(use)] -= allocator_.size(block);
    if (options_.observe) tell(storage, -allocator_.size(block), block, use);
    allocator_.free(block);
  }

  void tell(StorageId storage, int64_t bytes, BlockId block, Use use) const {
    options_.observe({iteration_, op_, storage, bytes, allocator_.address(block), use, allocator_.size(block),
                      allocator_.figures().reserved.current});
  }

  void take_peak() {
    MemoryEstimate& peak = result_.peak;
    peak.peak_allocated = Bytes(allocator_.figures().allocated.current);
    peak.peak_op = op_;
    result_.peak_iteration = iteration_;
    set_parts(by_use_, peak);
  }

  const Graph& graph_;
  const IterationReplayOptions& options_;
  DeviceMemory memory_;
  CachingAllocator allocator_;
  OpTemporaries rules_;

  std::vector<StorageId> gradients_;   // in the order in which they are dropped
  std::vector<bool> is_gradient_;      // by storage
  std::vector<uint32_t> deaths_;       // storages, by the op before which they are freed
  std::vector<uint32_t> first_death_;  // by op; one more than there are moments
  std::vector<Gemm> gemms_;            // by op
  std::vector<bool> adds_;             // by op: whether it adds two tensors
  std::vector<OutputOrder> orders_;    // by op
  std::vector<Temporary> temporaries_;
  std::vector<size_t> first_temporary_;  // by op

  std::vector<BlockId> blocks_;   // by storage; invalid where it has no memory now
  std::vector<Use> uses_;         // by storage
  std::vector<bool> stays_;       // by storage: from one iteration to the next
  std::vector<bool> of_product_;  // by storage: made by a matrix product
  std::vector<BlockId> taken_;    // temporaries of the op that runs
  struct Workspaces {
    bool forward = false, backward = false, light = false;
  };
  std::array<Workspaces, 2> workspaces_;  // by pool
  int64_t pool_ = kSharedPool;            // that is allocated from

  BytesByUse by_use_ = {};
  OpId op_;  // that runs; invalid outside
  int iteration_ = 0;
  IterationReplay result_;
};

}  // namespace

DeviceDemands device_demands(const Graph& graph, const IterationReplayOptions& options) {
  DeviceDemands demands{
      .cublas_workspace = options.cublas_workspace, .tuning_buffer = options.tuning_buffer, .temporaries = {}};
  OpTemporaries rules(graph, options.temporaries);
  for (const Op& op : graph.ops()) rules.append(op, demands.temporaries);
  return demands;
}

IterationReplay replay_iterations(const Graph& graph, const IterationReplayOptions& options) {
  return Program(graph, options).run();
}

}  // namespace forerun
