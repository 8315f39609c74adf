#include "scale/gradient_exchange.h"

#include <algorithm>
#include <vector>

namespace forerun::scale {
namespace {

Bytes gradient_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.gradient); }
Bytes parameter_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.parameter); }

Nanoseconds reduce(const ExchangeSetup& setup, const Plan& plan, Bytes bytes) {
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

// Links within the nodes and between them; each does one thing at a time, in the order things are ready.
class ServerLanes {
 public:
  void send(const ServerExchange& times, Nanoseconds ready) {
    share_until(std::max(within_, ready));
    within_ = std::max(within_, ready) + times.reduce;
    between_ = std::max(between_, within_) + times.between();
    arriving_.push_back({between_, times.gather});
  }

  [[nodiscard]] Nanoseconds end() {
    share_until(Nanoseconds(INT64_MAX));
    return std::max(within_, between_);
  }

 private:
  struct Arrival {
    Nanoseconds at, gather;
  };

  // What has come by then is shared among the GPUs of a node.
  void share_until(Nanoseconds time) {
    for (; shared_ < arriving_.size() && arriving_[shared_].at <= time; ++shared_) {
      within_ = std::max(within_, arriving_[shared_].at) + arriving_[shared_].gather;
    }
  }

  Nanoseconds within_, between_;
  std::vector<Arrival> arriving_;
  size_t shared_ = 0;
};

ExchangeTimes servers(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  ExchangeTimes times;
  ServerLanes lanes;
  Nanoseconds computed;
  Bytes waiting;
  for (size_t i = blocks.size(); i-- > 0;) {
    computed += backward_of(blocks[i], plan.checkpoint);
    waiting += gradient_bytes(blocks[i], setup.bytes);
    if (i > 0 && (waiting < setup.bucket || !plan.overlap)) continue;
    const ServerExchange sent = setup.network.by_servers(waiting, plan.servers);
    times.exchange += sent.total();
    lanes.send(sent, computed);
    waiting = Bytes();
  }
  times.exposed = std::max(lanes.end() - computed, Nanoseconds());
  return times;
}

// No node waits for another: a step takes its own computation and exchange, or what the servers can serve.
ExchangeTimes asynchronous(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  Bytes gradients;
  Nanoseconds computed;
  for (const Block& block : blocks) {
    gradients += gradient_bytes(block, setup.bytes);
    computed += (forward_of(block) + backward_of(block, plan.checkpoint)) * plan.micro_batches;
  }
  const ServerExchange sent = setup.network.by_servers(gradients, plan.servers);
  const Nanoseconds busiest = std::max(sent.between(), sent.within());
  const Nanoseconds step = plan.overlap ? std::max(computed, busiest) : computed + sent.total();
  return {sent.total(), step - computed};
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
