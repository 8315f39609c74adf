// ForwardPass: runs a model's forward graph through the tracer, as PyTorch would dispatch it: op by op, with adapters beside
// linear layers, with weights of few bits, and with blocks of which only the inputs are kept.
//
// A checkpointed block is one step of the backward pass: it runs here without a record, and again, with one, when its gradient
// comes (checkpoint_stretches.h).
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "derive/autocast.h"
#include "derive/checkpoint_stretches.h"
#include "derive/dispatch.h"
#include "derive/fp8_linear.h"
#include "derive/lora.h"
#include "derive/quantized_linear.h"
#include "graph/training_run.h"

namespace forerun::derive {

// The weights of an adapter, and where it belongs.
struct Adapter {
  size_t op = 0;  // of the forward graph
  LinearLayer layer;
  Value down, up;  // [rank, in] and [out, rank]
};

// A linear layer whose weight is quantized.
struct QuantizedLayer {
  size_t operand = 0;          // of the op: which input the layer is applied to
  std::optional<size_t> bias;  // likewise
  QuantizedWeight weight;
};

class ForwardPass {
 public:
  ForwardPass(const Graph& forward, Tracer& tracer, Autocast& autocast, const DispatchTarget& target,
              const TrainingSetup& setup);

  // By tensor of the forward graph. Those of roots are set before the first run and stay.
  Value& value(TensorId id) { return values_[id.value]; }
  void add_adapter(size_t op, Adapter adapter) { adapters_.emplace(op, std::move(adapter)); }
  void add_quantized(size_t op, QuantizedLayer layer) { quantized_.emplace(op, std::move(layer)); }
  void set_fp8(std::map<size_t, Fp8Layer> layers) { fp8_ = std::move(layers); }

  // Once for each micro-batch.
  Status run();
  // The autograd graph of the micro-batch before this one goes, with what its nodes hold to no use.
  void forget_earlier_graph() { held_earlier_.clear(); }

 private:
  struct Rerun;
  using KeptResults = std::shared_ptr<std::vector<Values>>;

  Status run_op(size_t index, Values& values, Autocast& autocast);
  Status run_ops(size_t begin, size_t end, Values& values, Autocast& autocast);
  Status run_stretch(const Stretch& stretch);
  Values run_again(const Rerun& rerun, Values gradients);
  bool passes_over(const Rerun& rerun, size_t op, size_t& kept, bool& stopped, std::string_view name,
                   ValueSpan outputs) const;
  Value quantized(const QuantizedLayer& layer, const Values& inputs);
  Value multiplied_in_fp8(const Fp8Layer& layer, const Values& inputs);
  Value adapted(const Adapter& adapter, const Values& inputs, const Value& result, Autocast& autocast);
  void find_last_uses();
  void drop_finished(size_t index, Values& values);
  std::vector<TensorId> read_from_before(const Stretch& stretch) const;
  std::vector<TensorId> used_later(const Stretch& stretch) const;

  const Graph& forward_;
  Tracer& t_;
  Autocast& autocast_;
  const DispatchTarget& target_;
  const TrainingSetup& setup_;
  std::vector<Stretch> stretches_;
  std::map<size_t, Adapter> adapters_;          // by op
  std::map<size_t, QuantizedLayer> quantized_;  // by op
  std::map<size_t, Fp8Layer> fp8_;              // by op
  Values values_;
  std::vector<size_t> last_use_;  // by tensor: the last op that touches it
  std::vector<bool> wants_;       // by tensor: it would want a gradient, recorded or not
  Values held_, held_earlier_;    // by nodes of the graph that runs, and of the one before
  bool in_custom_op_ = false;     // what is dispatched now is hidden in an op of a library
  bool last_product_ = false;     // an adapter's second product is next
  bool running_again_ = false;
};

}  // namespace forerun::derive
