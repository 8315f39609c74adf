// The exchange of gradients against a slow reference simulation, and against its closed form, on random iterations.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cost/collective/contention.h"
#include "timeline/exchange_costs.h"
#include "timeline/simulator.h"
#include "timeline/test_chain.h"

namespace forerun {
namespace {

// The twin: one GPU that works off the passes of layers in order, and a network that serves messages, both
// followed from one moment at which something ends to the next. What runs beside one another proceeds more slowly.
class ReferenceExchange {
 public:
  ReferenceExchange(const std::vector<LayerCase>& layers, const GradientExchange& exchange) : exchange_(exchange) {
    for (const LayerCase& layer : layers) steps_.push_back({static_cast<double>(layer.forward)});
    std::vector<Bytes> sizes;
    std::vector<size_t> step_of;
    for (size_t i = layers.size(); i-- > 0;) {
      step_of.push_back(steps_.size());
      sizes.emplace_back(layers[i].bytes);
      steps_.push_back({static_cast<double>(layers[i].backward)});
    }
    size_t first = 0;
    for (const size_t end : message_ends(sizes, {}, exchange)) {
      Bytes bytes{};
      for (size_t i = first; i <= end; ++i) bytes += sizes[i];
      steps_[step_of[end]].message = messages_.size();
      messages_.push_back({exchange.parts(bytes)});
      first = end + 1;
    }
    for (const LayerCase& layer : layers) update_ += static_cast<double>(layer.update);
  }

  // When the update is done.
  double end() {
    std::vector<size_t> serving(exchange_.lanes.size(), SIZE_MAX);  // by lane: the message
    size_t step = 0, arrived = 0;
    double now = 0;
    while (step < steps_.size() || arrived < messages_.size()) {
      // A free lane takes the first of the messages that wait for it.
      for (size_t lane = 0; lane < serving.size(); ++lane) {
        for (size_t m = 0; m < messages_.size() && serving[lane] == SIZE_MAX; ++m) {
          Message& message = messages_[m];
          if (!message.ready || message.under_way || message.part().lane != lane) continue;
          message.under_way = true;
          message.left = static_cast<double>(message.part().busy.value);
          serving[lane] = m;
        }
      }
      const bool computing = step < steps_.size();
      double gpu_loss = 0;
      for (const size_t m : serving) {
        if (m != SIZE_MAX) gpu_loss += 1 - 1 / (1 + (kComputationSlowdown - 1) * messages_[m].part().traffic);
      }
      const double gpu_speed = 1 - gpu_loss;
      const auto speed_of = [&](size_t m) { return computing ? 1 / messages_[m].part().slowed : 1; };
      double passes = 1e18;
      if (computing) passes = std::min(steps_[step].left / gpu_speed, steps_[step].latest);
      for (const size_t m : serving) {
        if (m != SIZE_MAX) passes = std::min(passes, messages_[m].left / speed_of(m));
      }
      now += passes;
      for (size_t& m : serving) {
        if (m == SIZE_MAX) continue;
        messages_[m].left -= passes * speed_of(m);
        if (messages_[m].left > 1e-6) continue;
        messages_[m].under_way = false;
        if (++messages_[m].at == messages_[m].parts.size()) {
          messages_[m].ready = false;
          ++arrived;
        }
        m = SIZE_MAX;
      }
      if (!computing) continue;
      steps_[step].left -= passes * gpu_speed;
      steps_[step].latest -= passes;
      if (steps_[step].left > 1e-6 && steps_[step].latest > 1e-6) continue;
      if (const size_t m = steps_[step].message; m != SIZE_MAX) messages_[m].ready = true;
      ++step;
    }
    return now + update_;
  }

 private:
  struct Step {
    double left;
    size_t message = SIZE_MAX;                    // that leaves at its end
    double latest = left * kComputationSlowdown;  // until its end, however much runs beside it
  };
  struct Message {
    std::vector<ExchangePart> parts;
    size_t at = 0;
    bool ready = false, under_way = false;
    double left = 0;
    [[nodiscard]] const ExchangePart& part() const { return parts[at]; }
  };
  const GradientExchange& exchange_;
  std::vector<Step> steps_;
  std::vector<Message> messages_;
  double update_ = 0;
};

std::vector<LayerCase> random_layers(std::mt19937& random) {
  std::vector<LayerCase> layers(2 + random() % 30);
  for (LayerCase& layer : layers) {
    layer = {1'000 + static_cast<int64_t>(random() % 9'000), 1'000 + static_cast<int64_t>(random() % 20'000),
             static_cast<int64_t>(random() % 500), 1 + static_cast<int64_t>(random() % 40'000)};
  }
  return layers;
}

TEST(ExchangeAgainstReference, IsWhatFollowingEveryMomentGives) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::vector<LayerCase> layers = random_layers(random);
    const ChainCase chain = chain_of(layers);
    const double within = 1e9 * static_cast<double>(1 + random() % 8),
                 between = 1e9 * static_cast<double>(1 + random() % 8);
    const Topology topology{1 + static_cast<int64_t>(random() % 3), 1 + static_cast<int64_t>(random() % 3),
                            link_of(within, 50), link_of(between, 200)};
    if (ranks_of(topology) < 2) continue;
    const bool staged = i % 3 == 0;
    GradientExchange exchange =
        by_all_reduce({.algorithm = staged ? AllReduce::blueconnect : AllReduce::fastest, .topology = topology});
    exchange.grouping = i % 2 == 0 ? Grouping::buckets : i % 5 == 0 ? Grouping::whole : Grouping::each;
    exchange.bucket = Bytes(1 + static_cast<int64_t>(random() % 100'000));
    exchange.first_bucket = Bytes(1 + static_cast<int64_t>(random() % 20'000));
    // Without contention to the nanosecond.
    const ExchangedGraph alone = exchanged(chain, exchange);
    GradientExchange plain = exchange;
    plain.parts = [parts = exchange.parts](Bytes bytes) {
      std::vector<ExchangePart> list = parts(bytes);
      for (ExchangePart& part : list) part.slowed = 1, part.traffic = 0;
      return list;
    };
    EXPECT_NEAR(static_cast<double>(simulate(alone.graph).end.value), ReferenceExchange(layers, plain).end(), 1) << i;
    // With it as near as the rounds settle.
    const auto sent = exchanged_tasks(chain.graph, {chain.pass}, exchange);
    ASSERT_TRUE(sent.ok());
    const double found = static_cast<double>(simulate(sent->tasks).end.value);
    EXPECT_NEAR(found / ReferenceExchange(layers, exchange).end(), 1, 1e-3) << i;
  }
}

TEST(ExchangeAgainstReference, ClosedFormIsThatOfGradientsAtAnEvenPace) {
  std::mt19937 random(6);
  for (int i = 0; i < 60; ++i) {
    const Topology topology{
        2 + static_cast<int64_t>(random() % 3), 1, link_of(1e9, 0),
        link_of(1e8 * static_cast<double>(1 + random() % 20), static_cast<int64_t>(random() % 5000))};
    GradientExchange exchange = by_all_reduce({.algorithm = AllReduce::ring, .topology = topology});
    const auto grain = static_cast<int64_t>(10 + random() % 20);
    exchange.first_bucket = Bytes(grain * static_cast<int64_t>(1 + random() % 10));
    exchange.bucket = Bytes(grain * static_cast<int64_t>(10 + random() % 200));
    const auto count = static_cast<int64_t>(20 + random() % 1000), each = static_cast<int64_t>(10 + random() % 500);
    const ChainCase chain = chain_of(std::vector<LayerCase>(static_cast<size_t>(count), LayerCase{0, each, 0, grain}));
    const ExchangedGraph made = exchanged(chain, exchange);
    const Nanoseconds exposed = simulate(made.graph).end - Nanoseconds(chain.compute);
    EXPECT_EQ(even_exchange(Bytes(chain.bytes), exchange).exposed(Nanoseconds(chain.compute)).value, exposed.value)
        << i;
  }
  EXPECT_TRUE(even_exchange(Bytes(0), by_all_reduce({})).terms.empty());
}

}  // namespace
}  // namespace forerun
