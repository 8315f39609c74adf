#include "scale/resource_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>

#include "base/check.h"
#include "scale/fair_share.h"

namespace forerun::scale {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMostNodes = 64;
// As in the testbed: what counts as idle, and gaps in traffic that belong to the burst around them.
constexpr double kGpuFloor = 1, kMemoryFloor = 0.2, kLinkFloor = 0.01, kLeastIdleMs = 10;

double in_seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

// Gradients that travel together, and the computation that makes them.
struct Part {
  double compute = 0;  // seconds
  double bytes = 0;
};

std::vector<Part> parts_of(const WorkerLoad& load, bool overlap, const HostRates& host) {
  double forward = 0;
  for (const LayerLoad& layer : load.layers) forward += in_seconds(layer.forward);
  std::vector<Part> parts;
  for (size_t i = load.layers.size(); i-- > 0;) {
    const LayerLoad& layer = load.layers[i];
    const Part part{in_seconds(layer.backward), static_cast<double>(layer.gradient.value)};
    if (parts.empty() || (overlap && parts.back().bytes > 0)) {
      parts.push_back(part);
    } else {
      parts.back().compute += part.compute;
      parts.back().bytes += part.bytes;
    }
  }
  if (parts.empty()) parts.emplace_back();
  parts.front().compute += forward;
  for (Part& part : parts) part.compute *= host.compute_factor;
  parts.front().compute += host.compute_extra_us * 1e-6;
  return parts;
}

// A stretch of time in which nothing changed.
struct Stretch {
  double begin = 0, end = 0;
  double gpu = 0;  // use of worker 0's GPU, by computation
  bool computing = false;
  double send = 0, receive = 0;  // bytes a second, worker 0
};

enum class MessageKind : uint8_t { push, pull, ring };

struct Message {
  MessageKind kind;
  size_t worker, server, part;
  double left;     // bytes
  int64_t number;  // in the order in which they began
};

// Messages from one node to another go one after the other.
struct Channel {
  Transfer ends;
  std::deque<Message> queue;
};

enum class TimerKind : uint8_t { sent_to_host, taken_back, updated };

struct Timer {
  double at;
  TimerKind kind;
  size_t worker, server, part;
};

class ResourceSimulator {
 public:
  ResourceSimulator(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                    const SimulationOptions& options)
      : load_(load),
        setting_(setting),
        host_(host),
        parts_(parts_of(load, setting.overlap, host)),
        servers_(static_cast<size_t>(setting.servers)),
        workers_(static_cast<size_t>(setting.workers)),
        last_(options.warm_iterations + options.iterations),
        link_(std::min(setting.bits_per_second * host.link_share, host.most_bits_per_second) / 8) {
    const auto sharing = host.sharing.find(setting_name(setting));
    if (sharing != host.sharing.end() && !setting.fair) sharing_ = sharing->second;
    double alone = 0;
    double taken = 0;
    for (const LayerLoad& layer : load.layers) alone += in_seconds(layer.forward + layer.backward);
    for (const Part& part : parts_) taken += part.compute;
    use_alone_ = taken > 0 ? std::min(1.0, load.gpu_percent / 100 * host.gpu_factor * std::min(1.0, alone / taken)) : 0;
    channels_.resize(nodes() * nodes());
    for (size_t from = 0; from < nodes(); ++from) {
      for (size_t to = 0; to < nodes(); ++to) channels_[from * nodes() + to].ends = {from, to};
    }
    state_.resize(workers_);
    arrived_.assign(parts_.size() * std::max<size_t>(servers_, 1), 0);
    server_free_.assign(std::max<size_t>(servers_, 1), 0);
    turns_.resize(servers_);
    answering_.assign(servers_, 0);
    held_.resize(servers_);
    for (WorkerState& worker : state_) begin_iteration(worker);
  }

  void run() {
    while (!done()) {
      const std::vector<size_t> busy = flowing_channels();
      const std::vector<double> rates = rates_of(busy);
      const double progress = gpu_progress();
      const double until = next_event(busy, rates, progress);
      CHECK(until < kNever, "training waits for itself");
      record(until, busy, rates);
      advance(until, busy, rates, progress);
    }
  }

  [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }
  [[nodiscard]] double computed_in(size_t worker, int64_t first, int64_t last) const {
    double sum = 0;
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<size_t>(i);
      sum += state_[worker].computed[at] - state_[worker].begins[at];
    }
    return sum;
  }
  // When a worker began its iteration of that number.
  // Of all gradients, one way.
  [[nodiscard]] double copy_seconds() const {
    double bytes = 0;
    for (const Part& part : parts_) bytes += part.bytes;
    return copy_seconds(bytes);
  }
  [[nodiscard]] double begin_of(size_t worker, int64_t iteration) const {
    return state_[worker].begins[static_cast<size_t>(iteration)];
  }

 private:
  struct WorkerState {
    int64_t iteration = -1;
    size_t part = 0;
    double compute_left = 0;
    double variation = 1;  // of this iteration's computation
    bool computing = false;
    size_t awaited = 0;  // answers still to come
    std::vector<double> begins;
    std::vector<double> computed;  // when each iteration's backward pass ended
  };

  struct HeldPush {
    size_t worker, part;
  };
  // Who sends to a server, and what is left of its turn.
  struct Turn {
    size_t channel = 0;
    double left = 0;
  };

  [[nodiscard]] size_t nodes() const { return servers_ + workers_; }
  [[nodiscard]] bool done() const {
    return std::all_of(state_.begin(), state_.end(), [&](const WorkerState& w) { return w.iteration >= last_; });
  }

  void begin_iteration(WorkerState& worker) {
    ++worker.iteration;
    worker.begins.push_back(now_);
    if (worker.iteration >= last_ && done()) return;
    worker.part = 0;
    worker.awaited = parts_.size() * std::max<size_t>(servers_, 1);
    worker.variation = 1 + host_.jitter * (2 * next_random() - 1);
    worker.compute_left = parts_[0].compute * worker.variation;
    worker.computing = true;
  }

  // From 0 to 1, the same in every run.
  double next_random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(random_ >> 11) * 0x1p-53;
  }

  // Seconds of computation that each computing worker gets done in a second.
  [[nodiscard]] double gpu_progress() const {
    const int64_t workers = computing();
    if (!setting_.shared_gpu || workers < 2) return 1;
    const double wanted = host_.sharing_factor * static_cast<double>(workers) * use_alone_;
    constexpr double kSharp = 50;  // powers beyond are the larger of the two
    if (host_.sharing_power > kSharp) return wanted > 1 ? 1 / wanted : 1;
    return std::pow(1 + std::pow(wanted, host_.sharing_power), -1 / host_.sharing_power);
  }
  // How much of the GPU's time counts as busy while so many compute.
  [[nodiscard]] double gpu_use(int64_t workers) const {
    const double wanted = std::min(1.0, static_cast<double>(workers) * use_alone_ * gpu_progress());
    return workers == 0 ? 0 : 1 - (1 - wanted) * std::pow(1 - host_.linger, static_cast<double>(workers - 1));
  }
  [[nodiscard]] int64_t computing() const {
    return std::count_if(state_.begin(), state_.end(), [](const WorkerState& w) { return w.computing; });
  }

  [[nodiscard]] bool takes_turns(const Channel& channel) const {
    return sharing_.turn_bytes > 0 && channel.ends.to < servers_ && channel.ends.from >= servers_;
  }
  // Channels with something to send, of those that take turns the one whose turn it is.
  [[nodiscard]] std::vector<size_t> flowing_channels() {
    std::vector<size_t> flowing;
    std::vector<std::vector<size_t>> waiting(servers_);
    for (size_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i].queue.empty()) continue;
      if (takes_turns(channels_[i])) {
        waiting[channels_[i].ends.to].push_back(i);
      } else {
        flowing.push_back(i);
      }
    }
    for (size_t server = 0; server < servers_; ++server) {
      const std::vector<size_t>& among = waiting[server];
      if (among.empty()) continue;
      Turn& turn = turns_[server];
      if (turn.left < 1 || channels_[turn.channel].queue.empty()) {
        const auto next = std::upper_bound(among.begin(), among.end(), turn.channel);
        turn = {next == among.end() ? among.front() : *next, sharing_.turn_bytes};
      }
      if (among.size() == 1) turn.left = std::max(sharing_.turn_bytes, sharing_.first_turn_bytes);
      flowing.push_back(turn.channel);
    }
    return flowing;
  }
  [[nodiscard]] std::vector<double> rates_of(const std::vector<size_t>& busy) const {
    std::vector<Transfer> transfers;
    std::vector<size_t> first(servers_, channels_.size());  // by server: the channel whose message began first
    for (const size_t i : busy) {
      const size_t from = channels_[i].ends.from;
      transfers.push_back(channels_[i].ends);
      if (from >= servers_) continue;
      if (first[from] == channels_.size() ||
          channels_[i].queue.front().number < channels_[first[from]].queue.front().number) {
        first[from] = i;
      }
    }
    for (size_t i = 0; i < busy.size(); ++i) {
      const size_t from = channels_[busy[i]].ends.from;
      if (from < servers_ && first[from] == busy[i]) transfers[i].weight = sharing_.first_weight;
    }
    return fair_rates(transfers, nodes(), link_);
  }

  [[nodiscard]] double next_event(const std::vector<size_t>& busy, const std::vector<double>& rates,
                                  double progress) const {
    double at = kNever;
    for (const WorkerState& worker : state_) {
      if (worker.computing) at = std::min(at, now_ + worker.compute_left / progress);
    }
    for (size_t i = 0; i < busy.size(); ++i) {
      const Channel& channel = channels_[busy[i]];
      double bytes = channel.queue.front().left;
      if (takes_turns(channel)) bytes = std::min(bytes, turns_[channel.ends.to].left);
      if (rates[i] > 0) at = std::min(at, now_ + bytes / rates[i]);
    }
    for (const Timer& timer : timers_) at = std::min(at, timer.at);
    return std::max(at, now_);
  }

  void record(double until, const std::vector<size_t>& busy, const std::vector<double>& rates) {
    if (until <= now_) return;
    Stretch s{.begin = now_, .end = until};
    const int64_t active = setting_.shared_gpu ? computing() : (state_[0].computing ? 1 : 0);
    s.computing = active > 0;
    s.gpu = gpu_use(active);
    for (size_t i = 0; i < busy.size(); ++i) {
      const Transfer& ends = channels_[busy[i]].ends;
      if (ends.from == servers_) s.send += rates[i];
      if (ends.to == servers_) s.receive += rates[i];
    }
    stretches_.push_back(s);
  }

  void advance(double until, const std::vector<size_t>& busy, const std::vector<double>& rates, double progress) {
    const double passed = until - now_;
    now_ = until;
    std::vector<size_t> computed;
    for (size_t w = 0; w < workers_; ++w) {
      if (!state_[w].computing) continue;
      state_[w].compute_left -= passed * progress;
      if (state_[w].compute_left <= 1e-12) computed.push_back(w);
    }
    std::vector<Message> delivered;
    for (size_t i = 0; i < busy.size(); ++i) {
      std::deque<Message>& queue = channels_[busy[i]].queue;
      queue.front().left -= passed * rates[i];
      const Channel& channel = channels_[busy[i]];
      if (takes_turns(channel)) turns_[channel.ends.to].left -= passed * rates[i];
      if (queue.front().left > 1e-3) continue;
      delivered.push_back(queue.front());
      queue.pop_front();
    }
    std::vector<Timer> rung;
    std::erase_if(timers_, [&](const Timer& timer) {
      if (timer.at > now_) return false;
      rung.push_back(timer);
      return true;
    });
    for (const size_t w : computed) on_computed(w);
    for (const Message& message : delivered) on_delivered(message);
    for (const Timer& timer : rung) on_timer(timer);
  }

  void on_computed(size_t w) {
    WorkerState& worker = state_[w];
    const size_t part = worker.part;
    timers_.push_back(
        {now_ + copy_seconds(parts_[part].bytes) + host_.start_us * 1e-6, TimerKind::sent_to_host, w, 0, part});
    if (++worker.part < parts_.size()) {
      worker.compute_left = parts_[worker.part].compute * worker.variation;
    } else {
      worker.computing = false;
      worker.computed.push_back(now_);
    }
  }

  void send(MessageKind kind, size_t from, size_t to, size_t worker, size_t server, size_t part, double bytes) {
    channels_[from * nodes() + to].queue.push_back({kind, worker, server, part, std::max(bytes, 1.0), ++messages_});
  }
  // Gradients wait while a synchronous server's answers are still going out.
  void push(size_t w, size_t s, size_t part) {
    if (setting_.sync && !setting_.overlap && answering_[s] > 0) return held_[s].push_back({w, part});
    send(MessageKind::push, servers_ + w, s, w, s, part, slice(part));
  }

  void on_timer(const Timer& timer) {
    switch (timer.kind) {
      case TimerKind::sent_to_host: on_copied(timer.worker, timer.part); break;
      case TimerKind::taken_back: begin_iteration(state_[timer.worker]); break;
      case TimerKind::updated: on_updated(timer); break;
    }
  }

  [[nodiscard]] double slice(size_t part) const {
    return parts_[part].bytes / static_cast<double>(std::max<size_t>(servers_, 1));
  }

  void on_copied(size_t w, size_t part) {
    for (size_t s = 0; s < servers_; ++s) push(w, s, part);
    if (servers_ > 0) return;
    if (workers_ < 2) return on_answer(w);
    if (++arrived_[part] < workers_) return;
    arrived_[part] = 0;
    // Everyone is there: each passes twice all but one slice on to its neighbour.
    const double n = static_cast<double>(workers_);
    for (size_t i = 0; i < workers_; ++i) {
      send(MessageKind::ring, i, (i + 1) % workers_, i, 0, part, 2 * (n - 1) / n * parts_[part].bytes);
    }
  }

  void on_delivered(const Message& message) {
    switch (message.kind) {
      case MessageKind::push: on_pushed(message); break;
      case MessageKind::pull: on_pulled(message); break;
      case MessageKind::ring: on_ring(message.part); break;
    }
  }

  // The ring is done when its last transfer is.
  void on_ring(size_t part) {
    if (++arrived_[part] < workers_) return;
    arrived_[part] = 0;
    for (size_t w = 0; w < workers_; ++w) on_answer(w);
  }

  void on_pulled(const Message& message) {
    on_answer(message.worker);
    if (--answering_[message.server] > 0) return;
    std::vector<HeldPush> held;
    held.swap(held_[message.server]);
    for (const HeldPush& h : held) push(h.worker, message.server, h.part);
  }

  // Seconds in which a server adds gradients to others and steps its optimizer; asynchronous ones copy what they answer.
  [[nodiscard]] double update_seconds(double bytes) const {
    const double added = setting_.sync ? static_cast<double>(workers_) : 1 + host_.async_passes;
    const double passes = added + host_.optimizer_passes[static_cast<size_t>(load_.optimizer)];
    return passes * bytes / host_.server_bytes_per_second + bytes / host_.update_bytes_per_second;
  }
  // Between a GPU and its host; parts of the gradients have their part of the tensors.
  [[nodiscard]] double copy_seconds(double bytes) const {
    double whole = 0;
    for (const Part& part : parts_) whole += part.bytes;
    const double tensors = whole > 0 ? load_.tensors * bytes / whole : 0;
    return in_seconds(host_.message) + tensors * host_.copy_tensor_us * 1e-6 + bytes / host_.copy_bytes_per_second;
  }

  void on_pushed(const Message& message) {
    size_t& arrived = arrived_[message.part * servers_ + message.server];
    if (setting_.sync && ++arrived < workers_) return;
    arrived = 0;
    const double took = update_seconds(slice(message.part));
    double& free = server_free_[message.server];
    free = std::max(free, now_) + took;
    timers_.push_back({free + host_.start_us * 1e-6, TimerKind::updated, message.worker, message.server, message.part});
  }

  void on_updated(const Timer& timer) {
    for (size_t w = 0; w < workers_; ++w) {
      if (!setting_.sync && w != timer.worker) continue;
      ++answering_[timer.server];
      send(MessageKind::pull, timer.server, servers_ + w, w, timer.server, timer.part, slice(timer.part));
    }
  }

  void on_answer(size_t w) {
    WorkerState& worker = state_[w];
    CHECK(worker.awaited > 0, "an answer that nobody awaits");
    if (--worker.awaited > 0) return;
    double bytes = 0;
    for (const Part& part : parts_) bytes += part.bytes;
    const double update = servers_ == 0 ? in_seconds(load_.update) : 0;
    timers_.push_back({now_ + copy_seconds(bytes) + update, TimerKind::taken_back, w, 0, 0});
  }

  const WorkerLoad& load_;
  const ResourceSetting& setting_;
  const HostRates& host_;
  std::vector<Part> parts_;
  size_t servers_, workers_;
  int64_t last_;
  double link_;
  LinkSharing sharing_;
  double use_alone_ = 0;  // of the GPU while one worker computes
  double now_ = 0;
  uint64_t random_ = 1;
  int64_t messages_ = 0;
  std::vector<Channel> channels_;
  std::vector<WorkerState> state_;
  std::vector<size_t> arrived_;  // by part and server
  std::vector<double> server_free_;
  std::vector<Turn> turns_;        // by server
  std::vector<size_t> answering_;  // by server: answers on their way
  std::vector<std::vector<HeldPush>> held_;
  std::vector<Timer> timers_;
  std::vector<Stretch> stretches_;
};

// The mean of a level over each step of the window.
template <class Level>
monitor::Series binned(const std::vector<Stretch>& stretches, double begin, double end, double step, Level level) {
  monitor::Series series{std::llround(step * 1e9), {}};
  const auto count = static_cast<size_t>(std::max(0.0, std::floor((end - begin) / step + 1e-9)));
  series.values.assign(count, 0);
  for (const Stretch& s : stretches) {
    const double value = level(s);
    if (value == 0) continue;
    const double from = std::max(s.begin - begin, 0.0);
    const double to = s.end - begin;
    for (auto bin = static_cast<size_t>(from / step); bin < count && static_cast<double>(bin) * step < to; ++bin) {
      const double first = static_cast<double>(bin) * step;
      const double covered = std::min(to, first + step) - std::max(from, first);
      if (covered > 0) series.values[bin] += value * covered / step;
    }
  }
  return series;
}

// Seconds of a window in which anyone computes, and in which the GPU counts as busy.
struct GpuTime {
  double computing = 0;
  double busy = 0;
};

GpuTime gpu_time(const std::vector<Stretch>& stretches, double begin, double end) {
  GpuTime time;
  for (const Stretch& s : stretches) {
    const double length = std::min(s.end, end) - std::max(s.begin, begin);
    if (length <= 0 || !s.computing) continue;
    time.busy += s.gpu * length;
    time.computing += length;
  }
  return time;
}

}  // namespace

Result<ResourceSetting> resource_setting(std::string_view name) {
  const auto wrong = [&] {
    return Error{"'" + std::string(name) + "' is no setting", "", "give one such as P1w2-10G, P2w4-1G or AR4-10G"};
  };
  const auto number = [](std::string_view& text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
  };
  ResourceSetting setting;
  std::string_view rest = name;
  if (rest.starts_with("AR")) {
    rest.remove_prefix(2);
    setting.servers = 0;
  } else if (rest.starts_with("P")) {
    rest.remove_prefix(1);
    if (!number(rest, setting.servers) || setting.servers < 1 || !rest.starts_with("w")) return wrong();
    rest.remove_prefix(1);
  } else {
    return wrong();
  }
  if (!number(rest, setting.workers) || !rest.starts_with("-")) return wrong();
  rest.remove_prefix(1);
  double rate = 0;
  if (!number(rest, rate) || !(rest == "G" || rest == "M") || !(rate > 0) || rate > 1e6) return wrong();
  const int64_t least = setting.servers == 0 ? 2 : 1;
  if (setting.workers < least || static_cast<double>(setting.workers + setting.servers) > kMostNodes) return wrong();
  setting.bits_per_second = rate * (rest == "G" ? 1e9 : 1e6);
  return setting;
}

std::string setting_name(const ResourceSetting& setting) {
  const std::string workers = std::to_string(setting.workers);
  const std::string nodes =
      setting.servers == 0 ? "AR" + workers : "P" + std::to_string(setting.servers) + "w" + workers;
  const bool giga = setting.bits_per_second >= 1e9;
  const std::string rate = fmt::format("{:g}{}", setting.bits_per_second / (giga ? 1e9 : 1e6), giga ? "G" : "M");
  return nodes + "-" + rate + (setting.servers == 0 ? " allreduce" : setting.sync ? " sync" : " async");
}

ResourceUse simulate_resources(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                               const SimulationOptions& options) {
  CHECK(setting.workers >= 1 && setting.servers >= 0 && setting.bits_per_second > 0,
        "a setting needs workers and links");
  CHECK(options.iterations >= 1 && options.warm_iterations >= 0, "iterations are counted from one");
  ResourceSimulator simulator(load, setting, host, options);
  simulator.run();
  const int64_t last = options.warm_iterations + options.iterations;
  double begin = 0;
  double end = kNever;
  for (size_t w = 0; w < static_cast<size_t>(setting.workers); ++w) {
    begin = std::max(begin, simulator.begin_of(w, options.warm_iterations));
    end = std::min(end, simulator.begin_of(w, last));
  }
  ResourceUse use;
  const double whole = simulator.begin_of(0, last) - simulator.begin_of(0, options.warm_iterations);
  use.iteration = Nanoseconds(std::llround(whole / static_cast<double>(options.iterations) * 1e9));
  const auto workers = static_cast<size_t>(setting.workers);
  double computed = 0;
  for (size_t w = 0; w < workers; ++w) computed += simulator.computed_in(w, options.warm_iterations, last);
  const double counted = static_cast<double>(workers) * static_cast<double>(options.iterations);
  use.compute = Nanoseconds(std::llround(computed / counted * 1e9));
  const std::vector<Stretch>& stretches = simulator.stretches();
  const double step = in_seconds(options.step);
  const GpuTime time = gpu_time(stretches, begin, end);
  // Worker-iterations of the window on one GPU, and what each adds beside its computation.
  const double rounds = (end - begin) / (whole / static_cast<double>(options.iterations));
  const double shares = setting.shared_gpu ? static_cast<double>(workers) : 1;
  use.computing = Nanoseconds(rounds > 0 ? std::llround(time.computing / rounds * 1e9) : 0);
  const double copies = rounds * shares * host.copy_use * 2 * simulator.copy_seconds();
  double traffic = 0;
  for (size_t i = 0; i < load.traffic.size(); ++i) traffic += host.traffic[i] * load.traffic[i];
  const auto percent = [&](double seconds) {
    return time.computing > 0 ? std::min(100.0, 100 * seconds / time.computing) : 0;
  };
  const double level = percent(time.busy + copies);
  const double memory = percent(rounds * shares * traffic * host.memory_factor);
  const auto series = [&](auto value) { return binned(stretches, begin, end, step, value); };
  use.series = {series([&](const Stretch& s) { return s.computing ? level : 0; }),
                series([&](const Stretch& s) { return s.computing ? memory : 0; }),
                series([](const Stretch& s) { return s.send; }), series([](const Stretch& s) { return s.receive; })};
  const double floor = kLinkFloor * setting.bits_per_second / 8;
  use.metrics = {monitor::burst_metrics(use.series[0], kGpuFloor), monitor::burst_metrics(use.series[1], kMemoryFloor),
                 monitor::burst_metrics(use.series[2], floor, kLeastIdleMs),
                 monitor::burst_metrics(use.series[3], floor, kLeastIdleMs)};
  for (const size_t network : {2, 3}) {
    use.metrics[network].amount *= 1e-6;
    use.metrics[network].mean *= 1e-6;
    use.metrics[network].threshold *= 1e-6;
  }
  return use;
}

}  // namespace forerun::scale
