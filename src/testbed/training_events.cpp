#include "testbed/training_events.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "cost/collective/collective.h"
#include "testbed/message_queues.h"
#include "timeline/gradient_exchange.h"

namespace forerun::scale {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double in_seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

// Gradients that travel together, and the computation that makes them.
struct Part {
  double compute = 0;  // seconds
  double bytes = 0;
};

std::vector<Part> parts_of(const WorkerLoad& load, bool overlap, const HostRates& host) {
  double forward = 0;
  for (const LayerLoad& layer : load.layers) forward += in_seconds(layer.forward);
  std::vector<Bytes> gradients;
  for (size_t i = load.layers.size(); i-- > 0;) gradients.push_back(load.layers[i].gradient);
  // One message for each layer that has gradients, or one for all.
  GradientExchange exchange;
  exchange.grouping = overlap ? Grouping::buckets : Grouping::whole;
  exchange.bucket = exchange.first_bucket = Bytes(1);
  std::vector<Part> parts;
  size_t layer = load.layers.size();
  for (const size_t end : message_ends(gradients, {}, exchange)) {
    Part& part = parts.emplace_back();
    for (const size_t until = load.layers.size() - end - 1; layer > until;) {
      --layer;
      part.compute += in_seconds(load.layers[layer].backward);
      part.bytes += static_cast<double>(load.layers[layer].gradient.value);
    }
  }
  if (parts.empty()) parts.emplace_back();
  parts.front().compute += forward;
  for (Part& part : parts) part.compute *= host.compute_factor;
  parts.front().compute += host.compute_extra_us * 1e-6;
  return parts;
}

enum class TimerKind : uint8_t { sent_to_host, taken_back, updated };

struct Timer {
  double at;
  TimerKind kind;
  size_t worker, server, part;
};

LinkSharing sharing_of(const ResourceSetting& setting, const HostRates& host) {
  const auto found = host.sharing.find(setting_name(setting));
  if (found == host.sharing.end()) return {};
  LinkSharing sharing = found->second;
  if (setting.links == LinkState::even) sharing.first_weight = 1;
  return sharing;
}

class TrainingSimulator {
 public:
  TrainingSimulator(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                    const EventOptions& options)
      : load_(load),
        setting_(setting),
        host_(host),
        parts_(parts_of(load, setting.overlap, host)),
        servers_(static_cast<size_t>(setting.servers)),
        workers_(static_cast<size_t>(setting.workers)),
        last_(options.iterations),
        random_(options.seed),
        links_(servers_, workers_, std::min(setting.bits_per_second * host.link_share, host.most_bits_per_second) / 8,
               host.duplex_share, sharing_of(setting, host), setting.links == LinkState::last) {
    double alone = 0;
    double taken = 0;
    for (const LayerLoad& layer : load.layers) alone += in_seconds(layer.forward + layer.backward);
    for (const Part& part : parts_) {
      taken += part.compute;
      bytes_ += part.bytes;
    }
    total_compute_ = taken;
    use_alone_ = taken > 0 ? std::min(1.0, load.gpu_percent / 100 * host.gpu_factor * std::min(1.0, alone / taken)) : 0;
    state_.resize(workers_);
    arrived_.assign(parts_.size() * std::max<size_t>(servers_, 1), 0);
    server_free_.assign(std::max<size_t>(servers_, 1), 0);
    answering_.assign(servers_, 0);
    held_.resize(servers_);
    for (WorkerState& worker : state_) begin_iteration(worker);
  }

  TrainingEvents run() && {
    while (!done()) {
      links_.share_out();
      const double progress = gpu_progress();
      const double until = next_event(progress);
      CHECK(until < kNever, "training waits for itself");
      record(until);
      advance(until, progress);
    }
    for (WorkerState& worker : state_) {
      events_.begins.push_back(std::move(worker.begins));
      events_.computed.push_back(std::move(worker.computed));
    }
    events_.copy_seconds = copy_seconds(bytes_);
    events_.use_alone = use_alone_;
    return std::move(events_);
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

  [[nodiscard]] bool done() const {
    return std::all_of(state_.begin(), state_.end(), [&](const WorkerState& w) { return w.iteration >= last_; });
  }

  void begin_iteration(WorkerState& worker) {
    ++worker.iteration;
    worker.begins.push_back(now_);
    if (worker.iteration >= last_) return;
    worker.part = 0;
    worker.awaited = parts_.size() * std::max<size_t>(servers_, 1);
    worker.variation = 1 + host_.jitter * (2 * next_random() - 1);
    worker.compute_left = parts_[0].compute * worker.variation;
    worker.computing = true;
  }

  // From 0 to 1, the same for every seed.
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

  [[nodiscard]] double next_event(double progress) const {
    double at = now_ + links_.until_next();
    for (const WorkerState& worker : state_) {
      if (worker.computing) at = std::min(at, now_ + worker.compute_left / progress);
    }
    for (const Timer& timer : timers_) at = std::min(at, timer.at);
    return std::max(at, now_);
  }

  void record(double until) {
    if (until <= now_) return;
    const int64_t active = setting_.shared_gpu ? computing() : (state_[0].computing ? 1 : 0);
    events_.stretches.push_back({.begin = now_,
                                 .end = until,
                                 .gpu = gpu_use(active),
                                 .computing = active > 0,
                                 .send = links_.sending(servers_),
                                 .receive = links_.receiving(servers_)});
    const double pace = gpu_progress();
    for (size_t w = 0; w < workers_; ++w) {
      if (!state_[w].computing || !is_seen(w)) continue;
      const double from = share_done(state_[w]);
      const double step = total_compute_ > 0 ? (until - now_) * pace / (total_compute_ * state_[w].variation) : 0;
      events_.computing.push_back({w, now_, until, from, std::min(1.0, from + step), pace});
    }
  }
  [[nodiscard]] bool is_seen(size_t worker) const { return setting_.shared_gpu || worker == 0; }
  // Of this iteration's computation.
  [[nodiscard]] double share_done(const WorkerState& worker) const {
    double done = parts_[worker.part].compute - worker.compute_left / worker.variation;
    for (size_t i = 0; i < worker.part; ++i) done += parts_[i].compute;
    return total_compute_ > 0 ? std::clamp(done / total_compute_, 0.0, 1.0) : 0;
  }
  void record_copy(size_t worker, double bytes, double seconds, bool with_update) {
    if (!is_seen(worker)) return;
    events_.copying.push_back({worker, now_, now_ + seconds, bytes_ > 0 ? bytes / bytes_ : 0, with_update});
  }

  void advance(double until, double progress) {
    const double passed = until - now_;
    now_ = until;
    std::vector<size_t> computed;
    for (size_t w = 0; w < workers_; ++w) {
      if (!state_[w].computing) continue;
      state_[w].compute_left -= passed * progress;
      if (state_[w].compute_left <= 1e-12) computed.push_back(w);
    }
    const std::vector<Message> delivered = links_.advance(passed);
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
    record_copy(w, parts_[part].bytes, copy_seconds(parts_[part].bytes), /*with_update=*/false);
    timers_.push_back(
        {now_ + copy_seconds(parts_[part].bytes) + host_.start_us * 1e-6, TimerKind::sent_to_host, w, 0, part});
    if (++worker.part < parts_.size()) {
      worker.compute_left = parts_[worker.part].compute * worker.variation;
    } else {
      worker.computing = false;
      worker.computed.push_back(now_);
    }
  }

  // Gradients wait while a synchronous server's answers are still going out.
  void push(size_t w, size_t s, size_t part) {
    if (setting_.sync && !setting_.overlap && answering_[s] > 0) return held_[s].push_back({w, part});
    links_.send(servers_ + w, s, {MessageKind::push, w, s, part, slice(part)});
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
    // Everyone is there: each passes its share on to its neighbour.
    const double passed = ring_volume(parts_[part].bytes, static_cast<int64_t>(workers_));
    for (size_t i = 0; i < workers_; ++i) {
      links_.send(i, (i + 1) % workers_, {MessageKind::ring, i, 0, part, passed});
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
    const double tensors = bytes_ > 0 ? load_.tensors * bytes / bytes_ : 0;
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
      links_.send(timer.server, servers_ + w, {MessageKind::pull, w, timer.server, timer.part, slice(timer.part)});
    }
  }

  void on_answer(size_t w) {
    WorkerState& worker = state_[w];
    CHECK(worker.awaited > 0, "an answer that nobody awaits");
    if (--worker.awaited > 0) return;
    const double update = servers_ == 0 ? in_seconds(load_.update) : 0;
    record_copy(w, bytes_, copy_seconds(bytes_) + update, /*with_update=*/servers_ == 0);
    timers_.push_back({now_ + copy_seconds(bytes_) + update, TimerKind::taken_back, w, 0, 0});
  }

  const WorkerLoad& load_;
  const ResourceSetting& setting_;
  const HostRates& host_;
  std::vector<Part> parts_;
  double bytes_ = 0;          // of all parts
  double total_compute_ = 0;  // likewise, seconds
  size_t servers_, workers_;
  int64_t last_;
  double use_alone_ = 0;  // of the GPU while one worker computes
  double now_ = 0;
  uint64_t random_;
  MessageQueues links_;
  std::vector<WorkerState> state_;
  std::vector<size_t> arrived_;  // by part and server
  std::vector<double> server_free_;
  std::vector<size_t> answering_;  // by server: answers on their way
  std::vector<std::vector<HeldPush>> held_;
  std::vector<Timer> timers_;
  TrainingEvents events_;
};

}  // namespace

TrainingEvents training_events(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                               const EventOptions& options) {
  CHECK(setting.workers >= 1 && setting.servers >= 0 && setting.bits_per_second > 0,
        "a setting needs workers and links");
  CHECK(options.iterations >= 1, "iterations are counted from one");
  return TrainingSimulator(load, setting, host, options).run();
}

}  // namespace forerun::scale
