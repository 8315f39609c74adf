#include "timeline/simulator.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace forerun {
namespace {

Nanoseconds allowed_start(const TaskGraph& graph, const std::vector<Nanoseconds>& start, TaskId task) {
  Nanoseconds at{};
  for (const Dependency& dependency : graph.dependencies(task)) {
    at = std::max(at, allowed_by(dependency, start[dependency.before.value], graph.duration(dependency.before)));
  }
  return at;
}

// All lanes ordered: ids are a topological order of everything, so one pass suffices.
Simulation sweep(const TaskGraph& graph) {
  Simulation result;
  result.start.resize(graph.size());
  std::vector<Nanoseconds> free(graph.lanes().size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    Nanoseconds& lane = free[graph.lane(task).value];
    const Nanoseconds start = std::max(lane, allowed_start(graph, result.start, task));
    result.start[i] = start;
    lane = lane_free(start, graph.duration(task), graph.gap(task));
    result.end = std::max(result.end, start + graph.duration(task));
  }
  return result;
}

// Tasks that wait for each other, the other way round, and how many each still waits for.
class Releases {
 public:
  explicit Releases(const TaskGraph& graph) : blocked_(graph.size(), 0), next_(graph.size(), kNoLink) {
    std::vector<uint32_t> last(graph.lanes().size(), kNoLink);
    first_.assign(graph.size() + 1, 0);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const uint32_t lane = graph.lane(TaskId(i)).value;
      if (graph.lanes()[lane].ordered) {
        if (last[lane] != kNoLink) {
          next_[last[lane]] = i;
          ++blocked_[i];
        }
        last[lane] = i;
      }
      for (const Dependency& dependency : graph.dependencies(TaskId(i))) ++first_[dependency.before.value + 1];
      blocked_[i] += static_cast<uint32_t>(graph.dependencies(TaskId(i)).size());
    }
    for (size_t i = 0; i < graph.size(); ++i) first_[i + 1] += first_[i];
    successors_.resize(graph.dependency_count());
    std::vector<uint32_t> place(first_.begin(), first_.end() - 1);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      for (const Dependency& dependency : graph.dependencies(TaskId(i))) {
        successors_[place[dependency.before.value]++] = i;
      }
    }
  }

  // Calls `ready` for every task that nothing holds back from the beginning.
  template <class Ready>
  void begin(const Ready& ready) const {
    for (uint32_t i = 0; i < blocked_.size(); ++i) {
      if (blocked_[i] == 0) ready(TaskId(i));
    }
  }

  // Calls `ready` for every task that only waited for `task` to be started.
  template <class Ready>
  void started(TaskId task, const Ready& ready) {
    const auto release = [&](uint32_t other) {
      if (--blocked_[other] == 0) ready(TaskId(other));
    };
    if (next_[task.value] != kNoLink) release(next_[task.value]);
    for (uint32_t i = first_[task.value]; i < first_[task.value + 1]; ++i) release(successors_[i]);
  }

 private:
  std::vector<uint32_t> blocked_;
  std::vector<uint32_t> next_;  // on the same ordered lane
  std::vector<uint32_t> first_, successors_;
};

// The default schedule where lanes are not ordered. Each lane keeps its ready tasks in two heaps: those it could start
// at once, by priority, and those whose dependencies end later, by that time. One heap holds the best of each lane.
class LaneQueues {
 public:
  explicit LaneQueues(const TaskGraph& graph) : graph_(graph), lanes_(graph.lanes().size()) {}

  void add(TaskId task, Nanoseconds allowed) {
    LaneQueue& lane = lanes_[graph_.lane(task).value];
    const Key key = {allowed.value, -static_cast<int64_t>(graph_.priority(task)), task.value};
    if (allowed <= lane.free) {
      lane.now.push({0, std::get<1>(key), std::get<2>(key)});
    } else {
      lane.later.push(key);
    }
    offer(graph_.lane(task).value);
  }

  [[nodiscard]] bool empty() {
    drop_stale();
    return best_.empty();
  }

  // The next task and its start; the lane is then free at what `taken` says.
  std::pair<TaskId, Nanoseconds> take() {
    const Offer offer_taken = best_.top();
    best_.pop();
    LaneQueue& lane = lanes_[offer_taken.lane];
    (lane.now.empty() ? lane.later : lane.now).pop();
    return {TaskId(std::get<2>(offer_taken.key)), Nanoseconds(std::get<0>(offer_taken.key))};
  }

  void taken(TaskId task, Nanoseconds start) {
    const uint32_t number = graph_.lane(task).value;
    LaneQueue& lane = lanes_[number];
    lane.free = lane_free(start, graph_.duration(task), graph_.gap(task));
    while (!lane.later.empty() && std::get<0>(lane.later.top()) <= lane.free.value) {
      lane.now.push({0, std::get<1>(lane.later.top()), std::get<2>(lane.later.top())});
      lane.later.pop();
    }
    offer(number);
  }

 private:
  using Key = std::tuple<int64_t, int64_t, uint32_t>;  // start, -priority, id: the smallest goes first
  using Heap = std::priority_queue<Key, std::vector<Key>, std::greater<>>;
  struct LaneQueue {
    Heap now, later;
    Nanoseconds free{};
    uint32_t version = 0;
  };
  struct Offer {
    Key key;
    uint32_t lane, version;
    bool operator>(const Offer& other) const { return key > other.key; }
  };

  // Puts the lane's best task up, in place of what it offered before.
  void offer(uint32_t number) {
    LaneQueue& lane = lanes_[number];
    ++lane.version;
    if (!lane.now.empty()) {
      const Key& key = lane.now.top();
      best_.push({{lane.free.value, std::get<1>(key), std::get<2>(key)}, number, lane.version});
    } else if (!lane.later.empty()) {
      best_.push({lane.later.top(), number, lane.version});
    }
  }
  void drop_stale() {
    while (!best_.empty() && best_.top().version != lanes_[best_.top().lane].version) best_.pop();
  }

  const TaskGraph& graph_;
  std::vector<LaneQueue> lanes_;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> best_;
};

Simulation earliest_first(const TaskGraph& graph) {
  Simulation result;
  result.start.resize(graph.size());
  Releases releases(graph);
  LaneQueues queues(graph);
  releases.begin([&](TaskId task) { queues.add(task, Nanoseconds(0)); });
  while (!queues.empty()) {
    const auto [task, start] = queues.take();
    result.start[task.value] = start;
    result.end = std::max(result.end, start + graph.duration(task));
    queues.taken(task, start);
    releases.started(task, [&](TaskId other) { queues.add(other, allowed_start(graph, result.start, other)); });
  }
  return result;
}

}  // namespace

size_t earliest_start(std::span<const ReadyTask> ready) {
  size_t best = 0;
  for (size_t i = 1; i < ready.size(); ++i) {
    const auto key = [&](size_t at) { return std::make_tuple(ready[at].start, -int64_t{ready[at].priority}); };
    if (key(i) < key(best)) best = i;
  }
  return best;
}

Simulation simulate(const TaskGraph& graph) { return graph.all_lanes_ordered() ? sweep(graph) : earliest_first(graph); }

Simulation simulate(const TaskGraph& graph, const Schedule& schedule) {
  Simulation result;
  result.start.resize(graph.size());
  Releases releases(graph);
  std::vector<Nanoseconds> free(graph.lanes().size());
  std::vector<Nanoseconds> allowed;  // beside ready
  std::vector<ReadyTask> ready;
  const auto add = [&](TaskId task) {
    const auto place = std::lower_bound(ready.begin(), ready.end(), task,
                                        [](const ReadyTask& other, TaskId id) { return other.task < id; });
    allowed.insert(allowed.begin() + (place - ready.begin()), allowed_start(graph, result.start, task));
    ready.insert(place, {task, Nanoseconds(0), graph.priority(task), graph.lane(task)});
  };
  releases.begin(add);
  while (!ready.empty()) {
    for (size_t i = 0; i < ready.size(); ++i) ready[i].start = std::max(allowed[i], free[ready[i].lane.value]);
    const size_t picked = schedule(ready);
    CHECK(picked < ready.size(), "a schedule picked a task that is not ready");
    const ReadyTask next = ready[picked];
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(picked));
    allowed.erase(allowed.begin() + static_cast<ptrdiff_t>(picked));
    result.start[next.task.value] = next.start;
    result.end = std::max(result.end, next.start + graph.duration(next.task));
    free[next.lane.value] = lane_free(next.start, graph.duration(next.task), graph.gap(next.task));
    releases.started(next.task, add);
  }
  return result;
}

}  // namespace forerun
