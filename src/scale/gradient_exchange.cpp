#include "scale/gradient_exchange.h"

#include <algorithm>

namespace forerun::scale {
namespace {

Bytes gradient_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.gradient); }
Bytes parameter_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.parameter); }

Nanoseconds reduce(const ExchangeSetup& setup, const Plan& plan, Bytes bytes) {
  if (plan.exchange != Exchange::all_reduce) return setup.network.push(bytes, plan.data, plan.servers);
  return plan.zero > 0 ? setup.network.reduce_scatter(bytes, setup.group)
                       : setup.network.all_reduce(bytes, setup.group);
}

// Buckets of the backward pass: each leaves when its last block's gradients are there.
ExchangeTimes buckets(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  ExchangeTimes times;
  Nanoseconds computed;
  Nanoseconds sent;
  Bytes waiting;
  for (size_t i = blocks.size(); i-- > 0;) {
    computed += backward_of(blocks[i], plan.checkpoint);
    waiting += gradient_bytes(blocks[i], setup.bytes);
    if (waiting < setup.bucket && i > 0) continue;
    const Nanoseconds time = reduce(setup, plan, waiting);
    sent = std::max(sent, computed) + time;
    times.exchange += time;
    waiting = Bytes();
  }
  times.exposed = std::max(sent - computed, Nanoseconds());
  return times;
}

ExchangeTimes replicas(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  Bytes gradients;
  Bytes parameters;
  for (const Block& block : blocks) {
    gradients += gradient_bytes(block, setup.bytes);
    parameters += parameter_bytes(block, setup.bytes);
  }
  ExchangeTimes times;
  if (plan.overlap) {
    times = buckets(blocks, plan, setup);
  } else {
    times.exchange = reduce(setup, plan, gradients);
    times.exposed = times.exchange;
  }
  if (plan.zero > 0) {  // updated parameters go back to everyone
    const Nanoseconds gathered = setup.network.all_gather(parameters, setup.group);
    times.exchange += gathered;
    times.exposed += gathered;
  }
  return times;
}

// Both lanes of ZeRO 2 and 3 over one micro-batch after the other.
class ShardedLanes {
 public:
  ShardedLanes(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup)
      : blocks_(blocks), plan_(plan), setup_(setup), gathered_(blocks.size()) {}

  void micro_batch() {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (i == 0) gather(0);
      if (i + 1 < blocks_.size()) gather(i + 1);
      run(i, forward_of(blocks_[i]));
    }
    for (size_t i = blocks_.size(); i-- > 0;) {
      if (i + 1 == blocks_.size()) gather(i);
      if (i > 0) gather(i - 1);
      run(i, backward_of(blocks_[i], plan_.checkpoint));
      network_ = std::max(network_, gpu_) +
                 send(setup_.network.reduce_scatter(gradient_bytes(blocks_[i], setup_.bytes), setup_.group));
      if (!plan_.overlap) gpu_ = std::max(gpu_, network_);
    }
  }

  [[nodiscard]] Nanoseconds end() const { return std::max(gpu_, network_); }
  [[nodiscard]] Nanoseconds computed() const { return computed_; }
  [[nodiscard]] Nanoseconds sent() const { return sent_; }

 private:
  Nanoseconds send(Nanoseconds time) {
    sent_ += time;
    return time;
  }
  void gather(size_t i) {
    if (plan_.zero < 3) return;
    // One block ahead: its buffer is free once the GPU is done with the block before the last.
    network_ = std::max(network_, before_) +
               send(setup_.network.all_gather(parameter_bytes(blocks_[i], setup_.bytes), setup_.group));
    gathered_[i] = network_;
  }
  void run(size_t i, Nanoseconds time) {
    if (plan_.zero >= 3) gpu_ = std::max(gpu_, gathered_[i]);
    before_ = gpu_;
    gpu_ += time;
    computed_ += time;
  }

  std::span<const Block> blocks_;
  const Plan& plan_;
  const ExchangeSetup& setup_;
  std::vector<Nanoseconds> gathered_;
  Nanoseconds gpu_, network_, computed_, sent_, before_;
};

ExchangeTimes sharded(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  ShardedLanes lanes(blocks, plan, setup);
  lanes.micro_batch();
  const Nanoseconds first = lanes.end() - lanes.computed();
  const Nanoseconds first_sent = lanes.sent();
  ExchangeTimes times{first_sent, first};
  if (plan.micro_batches > 1) {
    lanes.micro_batch();
    const Nanoseconds both = lanes.end() - lanes.computed();
    times.exposed += (both - first) * (plan.micro_batches - 1);
    times.exchange += (lanes.sent() - first_sent) * (plan.micro_batches - 1);
  }
  if (plan.zero == 2) {
    Bytes parameters;
    for (const Block& block : blocks) parameters += parameter_bytes(block, setup.bytes);
    const Nanoseconds gathered = setup.network.all_gather(parameters, setup.group);
    times.exchange += gathered;
    times.exposed += gathered;
  }
  return times;
}

// Pulls come block by block before the first forward pass needs them; pushes leave during the last backward pass.
ExchangeTimes servers(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  Bytes gradients;
  for (const Block& block : blocks) gradients += gradient_bytes(block, setup.bytes);
  if (!plan.overlap) {
    const Nanoseconds both = setup.network.push(gradients, plan.data, plan.servers) * 2;
    return {both, both};
  }
  ExchangeTimes times = buckets(blocks, plan, setup);
  Nanoseconds pulled;
  Nanoseconds computed;
  Nanoseconds gpu;
  for (const Block& block : blocks) {
    const Nanoseconds time = setup.network.push(parameter_bytes(block, setup.bytes), plan.data, plan.servers);
    pulled += time;
    times.exchange += time;
    gpu = std::max(gpu, pulled) + forward_of(block);
    computed += forward_of(block);
  }
  times.exposed += gpu - computed;
  return times;
}

// No worker waits for another: a step takes a worker's own computation and exchange, or what the servers can serve.
ExchangeTimes asynchronous(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  Bytes gradients;
  Nanoseconds computed;
  for (const Block& block : blocks) {
    gradients += gradient_bytes(block, setup.bytes);
    computed += (forward_of(block) + backward_of(block, plan.checkpoint)) * plan.micro_batches;
  }
  const Nanoseconds alone = setup.network.push(gradients, 2, 2) * 2;
  const Nanoseconds served = setup.network.push(gradients, plan.data, plan.servers);
  const Nanoseconds step = std::max(plan.overlap ? std::max(computed, alone) : computed + alone, served);
  return {std::max(alone, served), step - computed};
}

}  // namespace

Nanoseconds forward_of(const Block& block) { return block.forward + block.forward_exchange; }

Nanoseconds backward_of(const Block& block, bool checkpoint) {
  const Nanoseconds again = checkpoint && block.layer ? forward_of(block) : Nanoseconds();
  return again + block.backward + block.backward_exchange;
}

ExchangeTimes exchange_of(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  if (plan.data < 2) return {};
  if (plan.exchange == Exchange::servers) return servers(blocks, plan, setup);
  if (plan.exchange == Exchange::servers_async) return asynchronous(blocks, plan, setup);
  return plan.zero >= 2 ? sharded(blocks, plan, setup) : replicas(blocks, plan, setup);
}

}  // namespace forerun::scale
