#include "scale/transformer_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scale/plan.h"

namespace forerun::scale {
namespace {

constexpr double kMemoryShare = 0.8;      // of the bandwidth, by the operands of a product
constexpr double kUnsharedBytes = 60;     // per element of the hidden state: norms, dropout, residuals
constexpr double kSharedBytes = 15;       // per element of a shared intermediate result, forward and backward
constexpr double kEmbeddingBytes = 24;    // per element
constexpr double kHeadNormBytes = 30;     // per element
constexpr double kFusedBackward = 2.5;    // products of fused attention's backward pass over its forward pass
constexpr double kForwardPart = 1.0 / 3;  // of elementwise work and of the host's
constexpr double kCastBytes = 4;          // per element that is cast to fp8: read, written, and written transposed

struct Shape {
  double tokens, hidden, sequence, micro_batch, tensor;
  double queries;       // of a sequence, on one GPU
  double unshared = 1;  // GPUs that norms, dropout and residuals are divided by
};

struct Seconds {
  double forward = 0;
  double backward = 0;
  double weights = 0;    // of the backward pass, gradients of weights
  double computing = 0;  // of both, what arithmetic limits; the rest is the memory's, or the host's
  double moving = 0;
};

void add(Seconds& sum, const Seconds& more) {
  sum.forward += more.forward;
  sum.backward += more.backward;
  sum.weights += more.weights;
  sum.computing += more.computing;
  sum.moving += more.moving;
}

// Hopper's share of its peak, and that of later GPUs until somebody measures theirs.
double peak_share(const Device& gpu, const Efficiency& efficiency) {
  return gpu.compute_capability >= kHopper ? efficiency.hopper : 1;
}

class LayerTimer {
 public:
  LayerTimer(const Device& gpu, const Efficiency& efficiency, const Arithmetic& arithmetic)
      : e_(efficiency),
        peak_(gpu.rate(arithmetic.unit) * peak_share(gpu, efficiency)),
        fp8_peak_(gpu.rate(Unit::fp8_tensor) * peak_share(gpu, efficiency)),
        bandwidth_(gpu.memory_bandwidth),
        element_(static_cast<double>(arithmetic.element)),
        summed_(static_cast<double>(arithmetic.element + 2 * arithmetic.gradient)),
        fp8_(arithmetic.fp8) {}

  // One product with a weight: y[m,n] = x[m,k] w[k,n], then its two gradients.
  [[nodiscard]] Seconds linear(double m, double n, double k) const { return products(m, n, k, false); }

  // The same of a layer, in fp8 where that is asked for.
  [[nodiscard]] Seconds layer_linear(double m, double n, double k) const {
    Seconds sum = products(m, n, k, fp8_);
    if (!fp8_) return sum;
    const double input = kCastBytes * m * k / bandwidth_, gradient = kCastBytes * m * n / bandwidth_;
    sum.forward += input;
    sum.backward += gradient;
    sum.moving += input + gradient;
    return sum;
  }

  [[nodiscard]] Seconds products(double m, double n, double k, bool fp8) const {
    const Product result = product(m, n, k, fp8);
    const Product gradients[] = {product(m, k, n, fp8), product(k, n, m, fp8)};
    Seconds sum{.forward = result.seconds,
                .backward = gradients[0].seconds + gradients[1].seconds,
                .weights = gradients[1].seconds};
    for (const Product& one : {result, gradients[0], gradients[1]}) {
      (one.computes ? sum.computing : sum.moving) += one.seconds;
    }
    add(sum, accumulated(n * k));
    return sum;
  }

  // A micro-batch's gradients of so many weights are read, and the sum read and written.
  [[nodiscard]] Seconds accumulated(double weights) const {
    const double seconds = summed_ * weights / (bandwidth_ * kMemoryShare);
    return {.backward = seconds, .weights = seconds, .moving = seconds};
  }

  [[nodiscard]] Seconds moved(double bytes) const {
    const double seconds = bytes / bandwidth_;
    return {.forward = kForwardPart * seconds, .backward = (1 - kForwardPart) * seconds, .moving = seconds};
  }

  [[nodiscard]] Seconds attention(const Transformer& model, const Shape& s) const {
    const double queries = static_cast<double>(model.query_size()) / s.tensor;
    const double scores = s.micro_batch * s.queries * s.sequence;
    const double flops = 4 * scores * queries;
    const double rate = peak_ * e_.attention;
    if (e_.fused_attention) {
      const double once = (model.causal ? 0.5 : 1) * flops / rate;
      return {.forward = once, .backward = kFusedBackward * once, .computing = (1 + kFusedBackward) * once};
    }
    const Seconds bytes =
        moved(scores * std::max(1.0, static_cast<double>(model.heads) / s.tensor) * e_.score_bytes * element_ / 2);
    return {.forward = flops / rate + bytes.forward,
            .backward = 2 * flops / rate + bytes.backward,
            .computing = 3 * flops / rate,
            .moving = bytes.moving};
  }

  // GPU work that the host issues in the given time.
  [[nodiscard]] Seconds issued(const Seconds& gpu, double host_us) const {
    const auto both = [&](double a, double b) {
      return std::pow(std::pow(a, e_.sharpness) + std::pow(b, e_.sharpness), 1 / e_.sharpness);
    };
    const double host = host_us * 1e-6;
    const double backward = both(gpu.backward, (1 - kForwardPart) * host);
    return {.forward = both(gpu.forward, kForwardPart * host),
            .backward = backward,
            .weights = gpu.backward > 0 ? backward * gpu.weights / gpu.backward : 0,
            .computing = gpu.computing,
            .moving = gpu.moving};
  }

 private:
  struct Product {
    double seconds = 0;
    bool computes = true;  // arithmetic limits it
  };
  [[nodiscard]] Product product(double m, double n, double k, bool fp8) const {
    const bool odd = std::fmod(m, 2) != 0 || std::fmod(n, 2) != 0 || std::fmod(k, 2) != 0;
    const double compute = 2 * m * n * k / ((fp8 ? fp8_peak_ : peak_) * e_.gemm * (odd ? e_.misaligned : 1));
    const double moved =
        fp8 ? element_ * m * n + n * k + m * k : element_ * (m * n + n * k + m * k);  // operands of a byte
    const double memory = moved / (bandwidth_ * kMemoryShare);
    return {std::max(compute, memory), compute >= memory};
  }

  const Efficiency& e_;
  double peak_;
  double fp8_peak_;
  double bandwidth_;
  double element_;
  double summed_;  // bytes moved for each weight by adding up its gradient
  bool fp8_;
};

Nanoseconds whole(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

Seconds layer_seconds(const Transformer& model, const LayerTimer& timer, const Efficiency& e, const Shape& s) {
  const double h = s.hidden;
  const double keys =
      std::max(static_cast<double>(model.kv_heads) / s.tensor, 1.0) * static_cast<double>(model.head_size());
  const double queries = static_cast<double>(model.query_size()) / s.tensor;
  const double inner = static_cast<double>(model.inner) / s.tensor;
  Seconds gpu = timer.layer_linear(s.tokens, queries + 2 * keys, h);
  add(gpu, timer.layer_linear(s.tokens, h, queries));
  add(gpu, timer.layer_linear(s.tokens, model.gated ? 2 * inner : inner, h));
  add(gpu, timer.layer_linear(s.tokens, h, inner));
  add(gpu, timer.attention(model, s));
  const double shared = h / s.tensor + (model.gated ? 1.5 : 1) * inner;
  add(gpu, timer.moved(e.elementwise * s.tokens * (kUnsharedBytes * h / s.unshared + kSharedBytes * shared)));
  return timer.issued(gpu, e.host_layer_us + (s.tensor > 1 ? e.host_tensor_us : 0));
}

Seconds head_seconds(const Transformer& model, const LayerTimer& timer, const Efficiency& e, const Shape& s) {
  const auto tensor = static_cast<int64_t>(s.tensor);
  const double words = static_cast<double>(padded_vocab(model.vocab, tensor)) / s.tensor;
  Seconds gpu = timer.linear(s.tokens, words, s.hidden);
  add(gpu, timer.moved(s.tokens * words * e.loss_bytes + s.tokens * s.hidden * kHeadNormBytes / s.unshared));
  return timer.issued(gpu, e.host_head_us);
}

// Bytes that a layer keeps for the backward pass.
double saved_by_layer(const Transformer& model, const Efficiency& e, const Shape& s, const Arithmetic& arithmetic,
                      bool selective) {
  const auto element = static_cast<double>(arithmetic.element);
  const double inner = (model.gated ? 3 : 2) * static_cast<double>(model.inner) / s.hidden;  // results of that width
  const double shared = element * (4 + inner) + static_cast<double>(model.gated ? 1 : 0);
  double bytes = s.tokens * s.hidden * (5 * element / s.unshared + shared / s.tensor);
  if (!e.fused_attention && !selective) {
    bytes += (2 * element + 1) * s.micro_batch * static_cast<double>(model.heads) / s.tensor * s.queries * s.sequence;
  }
  if (arithmetic.fp8) {  // the inputs of the four linear layers are kept in one byte
    const auto shared_inputs = static_cast<double>(model.query_size() + model.inner);
    bytes -= (element - 1) * s.tokens * (2 * s.hidden / s.unshared + shared_inputs / s.tensor);
  }
  return bytes;
}

Bytes whole_bytes(double bytes) { return Bytes(std::llround(bytes)); }

}  // namespace

int64_t padded_vocab(int64_t vocab, int64_t tensor) {
  if (tensor < 2) return vocab;
  const int64_t multiple = 128 * tensor;
  return (vocab + multiple - 1) / multiple * multiple;
}

namespace {

constexpr double kMostSeconds = 1e7;  // of a micro-batch: times and bytes are counted in 64 bits

// What can be asked of a model.
Status check_cut(const Transformer& model, const GpuCluster& cluster, const Efficiency& e, const Arithmetic& arithmetic,
                 const Cut& cut) {
  const int64_t tensor = cut.tensor;
  const auto shares = [&](int64_t group) {
    return model.heads % group == 0 && model.hidden % group == 0 && model.inner % group == 0;
  };
  if (!shares(tensor)) {
    return Error{fmt::format("{} heads cannot be shared by {} GPUs", model.heads, tensor), "tensor parallelism",
                 nearest_tensor_groups(tensor, cluster.gpus, cluster.node, shares)};
  }
  const double seconds = model.flops_per_sequence(false) * static_cast<double>(cut.micro_batch) /
                         cluster.gpu.rate(arithmetic.unit) / static_cast<double>(tensor * cut.context);
  if (!(seconds < kMostSeconds)) {
    return Error{fmt::format("a micro-batch of {} samples would take months", cut.micro_batch), "--micro-batch",
                 "choose a smaller one"};
  }
  // Two parts a GPU, one of the beginning and one of the end, so that causal attention is the same work for all.
  if (cut.context > 1 && model.sequence % (2 * cut.context) != 0) {
    return Error{
        fmt::format("sequences of {} tokens are not divided by {} GPUs in two parts each", model.sequence, cut.context),
        "context parallelism", "choose cp=N so that twice as much divides the sequence"};
  }
  if (cut.experts > 1) {
    return Error{"the model has no experts", "expert parallelism", "leave out ep"};
  }
  if (cut.selective && e.fused_attention) {
    return Error{"fused attention keeps no scores that could be made again instead", "selective",
                 "leave it out (nothing is lost), take checkpoint, or --attention eager"};
  }
  return {};
}

// How long keys and values of a context group travel for a layer, of which attention hides its own time.
struct RingTimes {
  Nanoseconds forward, backward;  // that nothing hides
};
RingTimes ring_exchange(const Transformer& model, const Network& network, const Cut& cut, const Shape& s,
                        double element, const Seconds& attention) {
  if (cut.context == 1) return {};
  const double keys =
      std::max(static_cast<double>(model.kv_heads) / s.tensor, 1.0) * static_cast<double>(model.head_size());
  const Bytes all(std::llround(2 * keys * element * s.micro_batch * s.sequence));
  const Group group{cut.context, cut.tensor};
  const double beside = (s.sequence - s.queries) / s.sequence;  // a GPU's own part waits for nobody
  const auto shown = [&](Bytes bytes, double hidden) {
    return std::max(network.all_gather(bytes, group) - whole(beside * hidden), Nanoseconds());
  };
  return {shown(all, attention.forward), shown(Bytes(2 * all.value), attention.backward)};  // gradients go round too
}

}  // namespace

Result<ModelCosts> transformer_costs(const Transformer& model, const GpuCluster& cluster, const Efficiency& e,
                                     const Arithmetic& arithmetic, const Cut& cut) {
  const int64_t micro_batch = cut.micro_batch, tensor = cut.tensor;
  if (const Status status = check_cut(model, cluster, e, arithmetic, cut); !status) return status.error();
  const Network network(cluster, e);
  const LayerTimer timer(cluster.gpu, e, arithmetic);
  const int64_t queries = model.sequence / cut.context;
  const Shape s{.tokens = static_cast<double>(micro_batch * queries),
                .hidden = static_cast<double>(model.hidden),
                .sequence = static_cast<double>(model.sequence),
                .micro_batch = static_cast<double>(micro_batch),
                .tensor = static_cast<double>(tensor),
                .queries = static_cast<double>(queries),
                .unshared = cut.sequence ? static_cast<double>(tensor) : 1};
  const ShapeFactors factors = factors_at(e, s.tokens, s.hidden, s.tensor);
  const auto element = static_cast<double>(arithmetic.element);
  const Bytes whole_state = whole_bytes(s.tokens * s.hidden * element);
  const Bytes state = whole_bytes(s.tokens * s.hidden * element / s.unshared);
  const Group group{tensor, 1};
  const Nanoseconds scattered = cut.sequence ? network.reduce_scatter(whole_state, group) : Nanoseconds();
  const Nanoseconds gathered = cut.sequence ? network.all_gather(whole_state, group) : Nanoseconds();
  const Nanoseconds exchange = cut.sequence ? scattered + gathered : network.all_reduce(whole_state, group);

  ModelCosts costs;
  const auto block = [&](std::string name, const Seconds& time, double factor, int64_t parameters) {
    Block b;
    b.name = std::move(name);
    b.parameters = parameters;
    b.forward = whole(time.forward * factor);
    b.backward = whole(time.backward * factor);
    b.weight_gradients = whole(time.weights * factor);
    b.output = state;
    return b;
  };
  const auto count = [&](const Seconds& time, double factor, int64_t times) {
    const auto part = [&](double seconds) { return whole(seconds * factor) * times; };
    costs.passes.computation += part(time.computing);
    costs.passes.memory_access += part(time.moving);
    costs.passes.idle += part(std::max(time.forward + time.backward - time.computing - time.moving, 0.0));
  };
  const int64_t words = padded_vocab(model.vocab, tensor) / tensor;
  Seconds embedded = timer.moved(s.tokens * s.hidden * kEmbeddingBytes);
  add(embedded, timer.accumulated(static_cast<double>(words * model.hidden)));
  const Seconds embedding_time = timer.issued(embedded, e.host_embedding_us);
  count(embedding_time, factors.ends, 1);
  Block embedding = block("embedding", embedding_time, factors.ends, (words + model.positions) * model.hidden);
  embedding.forward_exchange = cut.sequence ? scattered : exchange;
  embedding.backward_exchange = gathered;
  embedding.saved = whole_bytes(s.tokens * s.hidden / s.unshared);  // dropout's mask
  costs.blocks.push_back(embedding);

  const Seconds layer_time = layer_seconds(model, timer, e, s);
  count(layer_time, factors.layer, model.layers);
  Block layer = block("layer", layer_time, factors.layer, model.layer_parameters() / tensor);
  layer.layer = true;
  if (arithmetic.fp8) layer.copies = Bytes(2 * layer.parameters);  // by rows and transposed
  const Seconds attention = timer.attention(model, s);
  const RingTimes ring = ring_exchange(model, network, cut, s, element, attention);
  layer.forward_exchange = exchange * 2 + ring.forward;
  layer.backward_exchange = exchange * 2 + ring.backward;
  layer.saved = whole_bytes(saved_by_layer(model, e, s, arithmetic, cut.selective));
  if (cut.selective) {
    layer.backward += whole(attention.forward * factors.layer);
    layer.transient = whole_bytes(saved_by_layer(model, e, s, arithmetic, false)) - layer.saved;
  }
  if (cut.checkpoint) {
    layer.backward += layer.forward;
    layer.backward_exchange += layer.forward_exchange;
    layer.transient = layer.saved;
    layer.saved = layer.output;
  }
  for (int64_t i = 0; i < model.layers; ++i) costs.blocks.push_back(layer);

  const Seconds head_time = head_seconds(model, timer, e, s);
  count(head_time, factors.ends, 1);
  Block head = block("head", head_time, factors.ends,
                     model.tied ? model.head_parameters() : words * model.hidden + model.hidden);
  head.forward_exchange = gathered;
  head.backward_exchange = cut.sequence ? scattered : exchange;
  head.saved = Bytes(2 * state.value);
  head.transient = whole_bytes(s.tokens * static_cast<double>(words) * (element + 8));  // logits, and twice in float32
  costs.blocks.push_back(head);

  if (model.tied) costs.tied_parameters = words * model.hidden;
  const double cast = arithmetic.fp8 ? kCastBytes : 0;  // of weights, once a step
  costs.update_ns =
      (static_cast<double>(arithmetic.update_bytes) + cast) / (cluster.gpu.memory_bandwidth * e.update) * 1e9;
  costs.flops_per_sample = model.flops_per_sequence(e.fused_attention);
  costs.peak_seconds = costs.flops_per_sample / cluster.gpu.rate(arithmetic.unit);
  if (arithmetic.fp8) {
    const double in_fp8 = model.linear_flops_per_sequence();
    costs.peak_seconds = (costs.flops_per_sample - in_fp8) / cluster.gpu.rate(arithmetic.unit) +
                         in_fp8 / cluster.gpu.rate(Unit::fp8_tensor);
  }
  costs.tokens_per_sample = model.sequence;
  return costs;
}

}  // namespace forerun::scale
