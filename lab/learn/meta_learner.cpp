#include "lab/learn/meta_learner.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun::learn {
namespace {

constexpr int64_t kOuterSteps = 20;  // of an epoch
constexpr double kInnerClip = 1;     // norm that gradients are clipped to, as in training

torch::Tensor samples_of(const std::vector<SampleRange>& groups, const torch::Tensor& chosen) {
  std::vector<torch::Tensor> parts;
  const auto numbers = chosen.accessor<int64_t, 1>();
  for (int64_t i = 0; i < chosen.size(0); ++i) {
    const SampleRange& range = groups[static_cast<size_t>(numbers[i])];
    parts.push_back(torch::arange(range.first, range.first + range.count, torch::kInt64));
  }
  return torch::cat(parts);
}

// With repeats where there are fewer.
torch::Tensor draw_batch(const torch::Tensor& samples, int64_t count) {
  return samples.index_select(0, torch::randint(samples.size(0), {count}, torch::kInt64));
}

}  // namespace

void adapt(torch::nn::Module& module, const MetaLearner::Loss& loss, const torch::Tensor& samples, int64_t batch,
           int64_t steps, double rate) {
  torch::optim::Adam optimizer(module.parameters(), torch::optim::AdamOptions(rate));
  for (int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss(draw_batch(samples, batch)).backward();
    torch::nn::utils::clip_grad_norm_(module.parameters(), kInnerClip);
    optimizer.step();
  }
}

Result<MetaLearner> MetaLearner::create(torch::nn::Module& module, Loss loss, std::vector<MetaTask> tasks,
                                        const MetaOptions& options, int64_t batch) {
  if (tasks.size() < 2) {
    return Error{fmt::format("there is nothing to learn across: {} GPU{} to train on", tasks.size(),
                             tasks.size() == 1 ? "" : "s"),
                 "", "give the data of several, one --cache each"};
  }
  for (MetaTask& task : tasks) {
    std::erase_if(task.groups, [](const SampleRange& range) { return range.count == 0; });
    if (task.groups.size() >= 2) continue;
    return Error{"fewer than two traces to train on", task.name, "give more of this GPU, or leave it out"};
  }
  return MetaLearner(module, std::move(loss), std::move(tasks), options, batch);
}

int64_t MetaLearner::episodes() const {
  const auto tasks = static_cast<int64_t>(tasks_.size());
  return (kOuterSteps * options_.tasks + tasks - 1) / tasks * tasks;
}

MetaLearner::Episode MetaLearner::draw(const MetaTask& task) const {
  const auto groups = static_cast<int64_t>(task.groups.size());
  const int64_t support = std::min(options_.support, groups / 2);
  const int64_t query = std::min(options_.support, groups - support);
  const torch::Tensor order = torch::randperm(groups, torch::kInt64);
  return {samples_of(task.groups, order.narrow(0, 0, support)),
          samples_of(task.groups, order.narrow(0, support, query))};
}

torch::Tensor MetaLearner::gradients(const torch::Tensor& episodes) {
  std::vector<torch::Tensor> parameters = module_->parameters();
  std::vector<torch::Tensor> begun;
  std::vector<torch::Tensor> sums;
  for (const torch::Tensor& parameter : parameters) {
    begun.push_back(parameter.detach().clone());
    sums.push_back(torch::zeros_like(parameter));
  }
  torch::Tensor total;
  const double share = 1.0 / static_cast<double>(episodes.size(0));
  const auto numbers = episodes.accessor<int64_t, 1>();
  for (int64_t e = 0; e < episodes.size(0); ++e) {
    const Episode episode = draw(tasks_[static_cast<size_t>(numbers[e]) % tasks_.size()]);
    adapt(*module_, loss_, episode.support, batch_, options_.inner_steps, options_.inner_rate);
    module_->zero_grad();
    const torch::Tensor loss = loss_(draw_batch(episode.query, batch_));
    loss.backward();
    total = total.defined() ? total + loss.detach() : loss.detach();
    torch::NoGradGuard guard;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].grad().defined()) sums[i] += share * parameters[i].grad();
      parameters[i].copy_(begun[i]);
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = sums[i];
  return total * share;
}

}  // namespace forerun::learn
