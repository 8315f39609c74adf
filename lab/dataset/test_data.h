// Small made-up data sets for the tests of predictors: times follow from the ops by a rule that a predictor can learn.
#pragma once

#include <cmath>
#include <random>
#include <string>

#include "lab/dataset/dataset.h"
#include "lab/dataset/metrics.h"

namespace forerun::learn {

// `groups` families of `each` iterations; the last third of the families is for testing. An op's time grows with its
// FLOPs, by a factor of its name; a gap follows where the op is short. Iterations differ in batch and length.
inline DataSet made_up_data(int groups, int each, uint64_t seed = 7) {
  DataSet data;
  data.source = "made up";
  std::mt19937_64 random(seed);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); };
  const char* names[] = {"aten.mm.default", "aten.relu.default", "aten.add.Tensor"};
  const double factors[] = {1.0, 0.2, 0.3};
  for (int group = 0; group < groups; ++group) {
    for (int i = 0; i < each; ++i) {
      Example example;
      example.id = "g" + std::to_string(group) + "." + std::to_string(i);
      example.group = "g" + std::to_string(group);
      example.split = 3 * group >= 2 * groups ? Split::test : Split::train;
      example.batch = 1 << draw(6);
      example.size = 32;
      double total = 0;
      const int ops = 5 + draw(30);
      for (int op = 0; op < ops; ++op) {
        const int name = draw(3);
        const double width = 16 << draw(5);
        OpRow row;
        row.name = data.intern_name(names[name]);
        row.phase = op < ops / 2 ? Phase::forward : Phase::backward;
        row.set(Amount::flops, example.batch * width * 1000);
        row.set(Amount::bytes_read, example.batch * width);
        row.hyper[0] = static_cast<float>(example.batch);
        row.hyper[1] = static_cast<float>(width);
        example.ops.push_back(data.intern(row));
        const double us = factors[name] * std::sqrt(example.batch * width);
        const double gap = us < 5 ? 10 - us : 5;
        example.targets.op_us.push_back(static_cast<float>(us));
        example.targets.gap_us.push_back(static_cast<float>(gap));
        if (op > 0) example.edges.push_back({static_cast<uint32_t>(op - 1), static_cast<uint32_t>(op), 4});
        example.targets.gpu_busy_ms += us / 1000;
        total += us + gap;
      }
      example.targets.iteration_ms = total / 1000;
      example.targets.peak_bytes = 1e6 * example.batch;
      data.add(std::move(example));
    }
  }
  return data;
}

// The error on test families of what always answers with the mean of the training examples, an op or an iteration:
// iteration time as the mean time of an op times the number of ops, memory as its mean.
inline double naive_error(const DataSet& data, Target quantity) {
  const auto size = [&](uint32_t i) {
    return quantity == Target::peak_bytes ? 1.0 : static_cast<double>(data.examples()[i].ops.size());
  };
  double total = 0;
  double sizes = 0;
  for (const uint32_t i : select(data, Split::train)) {
    total += measured(data.examples()[i].targets, quantity);
    sizes += size(i);
  }
  const Selection test = select(data, Split::test);
  std::vector<PredictedPair> pairs;
  for (const uint32_t i : test) {
    pairs.push_back({measured(data.examples()[i].targets, quantity), total / sizes * size(i)});
  }
  return summarize(pairs).mre;
}

}  // namespace forerun::learn
