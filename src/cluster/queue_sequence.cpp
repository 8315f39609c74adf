#include "cluster/queue_sequence.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace forerun::cluster {
namespace {

double tardiness(const QueueJob& job, int64_t end) {
  return job.deadline == kNoDeadline || end <= job.deadline ? 0.0 : static_cast<double>(end - job.deadline);
}

std::vector<int> shortest_first(std::span<const QueueJob> jobs) {
  std::vector<int> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int job) { return std::tuple(jobs[job].duration, jobs[job].deadline, job); };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

std::vector<int> earliest_deadline_first(std::span<const QueueJob> jobs) {
  std::vector<int> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int job) { return std::tuple(jobs[job].deadline, jobs[job].duration, job); };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

// Smith's rule; nothing where no order meets all deadlines. `by_length` is shortest first.
std::optional<std::vector<int>> meet_deadlines(int64_t start, std::span<const QueueJob> jobs,
                                               const std::vector<int>& by_length) {
  std::vector<int> rest = by_length;
  int64_t end = start;
  for (const QueueJob& job : jobs) end += job.duration;
  std::vector<int> order(jobs.size());
  for (size_t place = jobs.size(); place-- > 0;) {
    size_t last = rest.size();
    while (last > 0 && jobs[rest[last - 1]].deadline < end) --last;
    if (last == 0) return std::nullopt;
    order[place] = rest[last - 1];
    end -= jobs[order[place]].duration;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(last) - 1);
  }
  return order;
}

// Depth-first over prefixes, children in shortest-first order.
class BranchAndBound {
 public:
  BranchAndBound(std::span<const QueueJob> jobs, const std::vector<int>& by_length, Sequence incumbent, int most_nodes)
      : jobs_(jobs), rest_(by_length), best_(std::move(incumbent)), left_(most_nodes) {}

  Sequence run(int64_t start) {
    descend(start, {});
    return best_;
  }

 private:
  void descend(int64_t now, SequenceCost so_far) {
    if (left_-- <= 0) return;
    SequenceCost bound = so_far;
    SequenceCost whole = so_far;
    int64_t end = now;
    for (const int job : rest_) {
      end += jobs_[job].duration;
      bound.tardiness += tardiness(jobs_[job], now + jobs_[job].duration);
      bound.completion += static_cast<double>(end);
      whole.tardiness += tardiness(jobs_[job], end);
    }
    whole.completion = bound.completion;
    if (whole < best_.cost) {
      best_.cost = whole;
      best_.order = prefix_;
      best_.order.insert(best_.order.end(), rest_.begin(), rest_.end());
    }
    if (!(bound < best_.cost)) return;
    bool freely_placed = false;
    for (size_t i = 0; i < rest_.size(); ++i) {
      const int job = rest_[i];
      if (jobs_[job].deadline == kNoDeadline) {
        if (freely_placed) continue;
        freely_placed = true;
      }
      const int64_t job_end = now + jobs_[job].duration;
      rest_.erase(rest_.begin() + static_cast<std::ptrdiff_t>(i));
      prefix_.push_back(job);
      descend(job_end, so_far + SequenceCost{tardiness(jobs_[job], job_end), static_cast<double>(job_end)});
      prefix_.pop_back();
      rest_.insert(rest_.begin() + static_cast<std::ptrdiff_t>(i), job);
    }
  }

  std::span<const QueueJob> jobs_;
  std::vector<int> rest_;
  std::vector<int> prefix_;
  Sequence best_;
  int left_;
};

}  // namespace

SequenceCost cost_of_order(int64_t start, std::span<const QueueJob> jobs, std::span<const int> order) {
  SequenceCost cost;
  int64_t end = start;
  for (const int job : order) {
    end += jobs[job].duration;
    cost.tardiness += tardiness(jobs[job], end);
    cost.completion += static_cast<double>(end);
  }
  return cost;
}

Sequence swap_late_forward(int64_t start, std::span<const QueueJob> jobs, std::vector<int> order) {
  SequenceCost cost = cost_of_order(start, jobs, order);
  std::vector<int64_t> ends(order.size());
  const auto late = [&](size_t place) { return ends[place] > jobs[order[place]].deadline; };
  const auto run = [&] {
    int64_t end = start;
    for (size_t i = 0; i < order.size(); ++i) ends[i] = end += jobs[order[i]].duration;
  };
  run();
  // Places first .. last hold the block; it passes its neighbour on the left while the whole gets cheaper.
  for (size_t place = order.size(); place-- > 0;) {
    if (!late(place)) continue;
    size_t first = place;
    size_t last = place;
    while (first > 0) {
      const auto neighbour = order.begin() + static_cast<std::ptrdiff_t>(first) - 1;
      const auto past = order.begin() + static_cast<std::ptrdiff_t>(last) + 1;
      std::rotate(neighbour, neighbour + 1, past);
      const SequenceCost moved = cost_of_order(start, jobs, order);
      if (!(moved < cost)) {
        std::rotate(neighbour, past - 1, past);
        break;
      }
      cost = moved;
      run();
      --first;
      if (!late(last)) --last;  // the neighbour, now at the right end, is on time: it stays behind
      while (last > first && !late(last)) --last;
    }
  }
  return {std::move(order), cost};
}

Sequence best_sequence(int64_t start, std::span<const QueueJob> jobs, int most_nodes) {
  std::vector<int> by_length = shortest_first(jobs);
  const SequenceCost shortest = cost_of_order(start, jobs, by_length);
  if (shortest.tardiness == 0 || jobs.size() == 1) return {std::move(by_length), shortest};
  if (auto order = meet_deadlines(start, jobs, by_length)) {
    const SequenceCost cost = cost_of_order(start, jobs, *order);
    return {std::move(*order), cost};
  }
  Sequence best = swap_late_forward(start, jobs, by_length);
  Sequence urgent = swap_late_forward(start, jobs, earliest_deadline_first(jobs));
  if (urgent.cost < best.cost) best = std::move(urgent);
  if (most_nodes == 0) return best;
  return BranchAndBound(jobs, by_length, std::move(best), most_nodes).run(start);
}

Sequence reference_best_sequence(int64_t start, std::span<const QueueJob> jobs) {
  std::vector<int> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  Sequence best{order, cost_of_order(start, jobs, order)};
  while (std::next_permutation(order.begin(), order.end())) {
    const SequenceCost cost = cost_of_order(start, jobs, order);
    if (cost < best.cost) best = {order, cost};
  }
  return best;
}

}  // namespace forerun::cluster
