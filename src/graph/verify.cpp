// verify: the promises of graph.h, checked in one pass over tensors, storages and ops.
//
// A tensor's place in its storage is checked as far as it is known: with strides, its last element must lie inside;
// without them (run/1) an expanded tensor has more elements than its storage, so only one element must fit. A storage
// without bytes and without strides is left alone: sources record it before it is resized. A storage that is no root
// and first seen as an input is a constant the source does not name (a mask kept by a module, a host scalar); it is an
// error only if an op makes it later.
#include <fmt/format.h>

#include "graph/graph.h"

namespace forerun {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 62;
constexpr const char* kRemedy = "the graph is inconsistent: capture or export the model again";

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), made_(graph.storages().size(), Seen::never) {}

  Status run() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      if (!check_storage(i)) return error();
    }
    for (size_t i = 0; i < graph_.tensors().size(); ++i) {
      if (!check_tensor(TensorId(i))) return error();
    }
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      if (!check_op(i)) return error_at(i);
    }
    if (!check_listed(graph_.results(), "result") || !check_listed(graph_.parameters(), "parameter")) return error();
    return {};
  }

 private:
  enum class Seen : uint8_t { never, constant, made };  // constant: first seen as an input, though no root

  bool fail(std::string what) {
    what_ = std::move(what);
    return false;
  }
  [[nodiscard]] Error error() const { return {what_, "", kRemedy}; }
  [[nodiscard]] Error error_at(size_t op) const {
    const NameId name = graph_.ops()[op].name;
    const bool named = name.value < graph_.names().size();
    return {fmt::format("op {} ({}): {}", op, named ? graph_.names()[name] : "?", what_), "", kRemedy};
  }

  bool check_storage(size_t index) {
    const Storage& storage = graph_.storages()[index];
    if (storage.bytes.value < 0 || storage.bytes.value > kMostBytes) {
      return fail(fmt::format("storage {} has {} bytes", index, storage.bytes.value));
    }
    if (storage.freed_before.valid() && storage.freed_before.value > graph_.op_count()) {
      return fail(
          fmt::format("storage {} is freed before op {} of {}", index, storage.freed_before.value, graph_.op_count()));
    }
    if (storage.root_name.valid() && storage.root_name.value >= graph_.names().size()) {
      return fail(fmt::format("storage {} has an unknown name", index));
    }
    if (storage.root != Root::none) made_[index] = Seen::made;
    return true;
  }

  // Sets `bytes` to what the extents ask for; false beyond 2^62.
  bool dense_bytes(TensorId id, int64_t& bytes) {
    bytes = size_of(graph_.tensor(id).dtype);
    bool empty = false;
    for (const int64_t extent : graph_.shape(id)) {
      if (extent < 0) return fail(fmt::format("tensor {} has a negative extent ({})", id.value, extent));
      if (extent == 0) {
        empty = true;
      } else if (bytes > kMostBytes / extent) {
        return fail(fmt::format("tensor {} has more than 2^62 bytes", id.value));
      } else {
        bytes *= extent;
      }
    }
    if (empty) bytes = 0;
    return true;
  }

  // Bytes from the first element to the end of the last, by strides.
  bool strided_bytes(TensorId id, int64_t& bytes) {
    const int64_t element = size_of(graph_.tensor(id).dtype);
    int64_t last = 0;
    for (size_t d = 0; d < graph_.shape(id).size(); ++d) {
      const int64_t steps = graph_.shape(id)[d] - 1;
      const int64_t stride = graph_.strides(id)[d];
      if (stride < 0) return fail(fmt::format("tensor {} has a negative stride ({})", id.value, stride));
      int64_t reach = 0;
      if (__builtin_mul_overflow(steps, stride, &reach) || reach > kMostBytes / element - 1 - last) {
        return fail(fmt::format("tensor {} reaches beyond 2^62 bytes", id.value));
      }
      last += reach;
    }
    bytes = (last + 1) * element;
    return true;
  }

  bool check_tensor(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.storage.value >= graph_.storages().size()) {
      return fail(
          fmt::format("tensor {} names storage {} of {}", id.value, tensor.storage.value, graph_.storages().size()));
    }
    int64_t bytes = 0;
    if (!dense_bytes(id, bytes)) return false;
    if (bytes == 0) return true;
    const int64_t held = graph_.storage(tensor.storage).bytes.value;
    if (!tensor.strides.valid()) {
      if (held == 0) return true;
      bytes = size_of(tensor.dtype);
    } else if (!strided_bytes(id, bytes)) {
      return false;
    }
    if (bytes > held) {
      return fail(fmt::format("tensor {} needs {} bytes of storage {}, which has {}", id.value, bytes,
                              tensor.storage.value, held));
    }
    return true;
  }

  bool check_op(size_t index) {
    const Op& op = graph_.ops()[index];
    const size_t names = graph_.names().size();
    if (op.name.value >= names || op.module.value >= names || op.autograd_node.value >= names) {
      return fail("a name that is not in the table");
    }
    if (phase_ == Phase::update && op.phase != Phase::update) {
      return fail(fmt::format("phase {} after phase {}", name_of(op.phase), name_of(phase_)));
    }
    phase_ = op.phase;
    const auto inputs = graph_.inputs(op);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!check_use(inputs[i], index, "input", i)) return false;
      Seen& seen = made_[graph_.tensor(inputs[i]).storage.value];
      if (seen == Seen::never) seen = Seen::constant;
    }
    const auto outputs = graph_.outputs(op);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!check_use(outputs[i], index, "output", i)) return false;
      const StorageId storage = graph_.tensor(outputs[i]).storage;
      if (made_[storage.value] == Seen::constant && !reads(inputs, storage)) {
        return fail(fmt::format("makes storage {}, which an op before it reads", storage.value));
      }
      if (made_[storage.value] == Seen::never) made_[storage.value] = Seen::made;
    }
    return true;
  }

  [[nodiscard]] bool reads(std::span<const TensorId> inputs, StorageId storage) const {
    for (const TensorId input : inputs) {
      if (graph_.tensor(input).storage == storage) return true;
    }
    return false;
  }

  bool check_use(TensorId id, size_t op, const char* side, size_t position) {
    if (id.value >= graph_.tensors().size()) {
      return fail(fmt::format("{} {} is tensor {} of {}", side, position, id.value, graph_.tensors().size()));
    }
    const StorageId storage = graph_.tensor(id).storage;
    const OpId freed = graph_.storage(storage).freed_before;
    if (freed.valid() && freed.value <= op) {
      return fail(fmt::format("{} {} uses storage {}, freed before op {}", side, position, storage.value, freed.value));
    }
    return true;
  }

  bool check_listed(const std::vector<TensorId>& tensors, const char* kind) {
    for (const TensorId id : tensors) {
      if (id.value >= graph_.tensors().size()) {
        return fail(fmt::format("a {} is tensor {} of {}", kind, id.value, graph_.tensors().size()));
      }
    }
    return true;
  }

  const Graph& graph_;
  std::vector<Seen> made_;  // by storage
  Phase phase_ = Phase::forward;
  std::string what_;
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace forerun
