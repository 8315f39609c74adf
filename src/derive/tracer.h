// Tracer: the stand-in for PyTorch's dispatcher and autograd engine while an iteration is derived.
//
// Ops (derive/aten.h) emit themselves here and record a Node where a gradient will be needed; backward() then runs the
// nodes in the engine's order: latest sequence number first, accumulation into parameters at once. Values are reference
// counted, so a storage is freed exactly where its last holder lets go.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "derive/value.h"
#include "graph/graph_builder.h"

namespace forerun::derive {

struct Edge {
  Node* node = nullptr;  // null: no gradient wanted there
  size_t input = 0;
  // The forward input: a gradient that is broadcast or of another type is brought back to this on its way.
  Shape sizes;
  DType dtype = DType::float32;
};

// One step of the backward pass: gradients of a forward op's results in, gradients of its inputs out.
struct Node {
  std::string_view name;  // "AddmmBackward0"; a literal
  uint32_t sequence = 0;
  std::vector<Edge> next;  // one for each input of the forward op
  size_t result_count = 1;
  // Gradients by input; null where none is wanted. Holds what the op saved; dropped after it ran.
  std::function<Values(Values)> backward;
  Value parameter;  // accumulation nodes only
  // Engine state.
  size_t waiting_for = 0;
  uint32_t counted_in = 0;  // the last backward pass that reached it
  Values gradients;
};

constexpr uint32_t kAccumulateSequence = 0xFFFFFFFEU;  // sequence number of gradient accumulation: before all else

class Tracer {
 public:
  Tracer();
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // --- making tensors (nothing is emitted)
  Value fresh(DType dtype, Shape sizes, Shape strides, bool on_gpu = true);
  Value fresh(DType dtype, const Shape& sizes) { return fresh(dtype, sizes, contiguous_strides(sizes)); }
  Value alias(const Value& of, DType dtype, Shape sizes, Shape strides);
  // A storage that is not the tracer's own idea, and a tensor in it: those of a recorded iteration.
  Ref<StorageToken> storage(Bytes bytes, bool on_gpu);
  Value view_of(Ref<StorageToken> storage, DType dtype, Shape sizes, Shape strides);
  // One that nothing in the iteration makes, the same for all that ask for this type and shape.
  Value constant(DType dtype, const Shape& sizes);
  Value root(Root kind, std::string_view name, DType dtype, const Shape& sizes, Shape strides, bool on_gpu = true);
  void make_parameter(const Value& v);  // gives it an accumulation node

  // --- ops
  void emit(std::string_view name, ValueSpan inputs, ValueSpan outputs, const Attributes& attributes = {});

  // Hears of every op about to be emitted and may answer that it does not run: it then leaves no trace in the graph. It may
  // put other tensors in the place of the op's results.
  using Interceptor = std::function<bool(std::string_view name, ValueSpan outputs)>;
  void intercept(Interceptor interceptor) { interceptor_ = std::move(interceptor); }

  // Records the op about to be emitted if gradients are on and an input needs one; else null. The results get the history.
  Node* record(std::string_view node_name, ValueSpan inputs, ValueSpan results);
  // The same for an op that overwrites `self`. If self is a view, its base takes part in the history too (CopySlices).
  Node* record_in_place(std::string_view node_name, ValueSpan inputs, const Value& self);
  // A result kept for the backward pass: a detached alias, as PyTorch saves it.
  Value save_result(const Value& v);
  Value unpack_result(const Value& saved);
  // A stretch of the model as one step of the backward pass, whatever its parts would record; `inputs` are those that want
  // a gradient back.
  Node& record_stretch(std::string_view node_name, ValueSpan inputs, ValueSpan results);
  [[nodiscard]] bool gradients_on() const { return gradients_on_; }
  // Whether ops record their way back from here on; tells how it was.
  bool set_gradients(bool on) { return std::exchange(gradients_on_, on); }
  // Whether the running backward step must produce the gradient of input i.
  [[nodiscard]] static bool wanted(const Node& node, size_t i) { return node.next[i].node != nullptr; }

  // --- phases
  void begin_forward() {
    phase_ = Phase::forward;
    gradients_on_ = true;
    module_.clear();
  }
  void set_module(std::string_view module) { module_ = module; }
  void begin_backward() {
    phase_ = Phase::backward;
    gradients_on_ = false;
    module_.clear();
  }
  void begin_update() {
    phase_ = Phase::update;
    node_ = nullptr;
    gradients_on_ = false;
    module_.clear();
  }
  // Ops from here on stand for one of a recorded iteration: they take its phase, module, sequence number and piece.
  void stand_in(const Op& op, std::string_view module, bool gradients_on);
  // Runs the backward pass from `loss` with the gradient `seed`. Gradients of parameters are then in gradient_of().
  void backward(const Value& loss, Value seed);
  // The same from some results at once; an undefined seed is passed over.
  void backward(const std::vector<Edge>& results, Values seeds);
  // The way back to the node that made a result: outlives the value.
  [[nodiscard]] static Edge edge_to(const Value& v) { return {v->history, v->result_index, v->sizes, v->dtype}; }
  // Makes the backward pass end at `v` and puts its gradient there.
  std::shared_ptr<Value> watch_gradient(const Value& v);
  [[nodiscard]] Value gradient_of(const Value& parameter) const;

  GraphBuilder& graph() { return graph_; }
  // Of all storages that were made, dead ones too.
  [[nodiscard]] double made_bytes() const { return made_bytes_; }
  // Frees nothing from here on (what lives now lives to the end) and hands out the graph.
  Graph finish();

 private:
  void accumulate(Node& node, Value gradient);
  void deliver(const Edge& edge, Value gradient);
  Value conform(const Edge& edge, Value gradient);
  Node& add_node(std::string_view name, ValueSpan inputs);
  void count_dependencies(const std::vector<Edge>& results);
  void step(Node& node);

  GraphBuilder graph_;
  Ref<FreeLog> log_;
  std::deque<Node> nodes_;
  std::map<const TensorState*, Value> gradients_;
  std::map<std::pair<DType, Shape>, Value> constants_;
  Phase phase_ = Phase::forward;
  std::string module_;
  bool gradients_on_ = true;
  uint32_t sequence_ = 0;
  double made_bytes_ = 0;
  Interceptor interceptor_;
  std::optional<uint32_t> recorded_sequence_;  // of the op that those emitted now stand for
  uint16_t recorded_piece_ = 0;                // likewise
  const Node* node_ = nullptr;                 // the backward step that is running
  uint32_t passes_ = 0;                        // backward passes so far
  std::vector<TensorId> operands_;             // of the op that is emitted
};

}  // namespace forerun::derive
