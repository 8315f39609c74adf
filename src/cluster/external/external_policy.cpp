#include "cluster/external/external_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cluster/external/policy_process.h"

namespace forerun::cluster {
namespace {

constexpr double kUsualPatience = 30;  // seconds for one answer
constexpr double kMostPatience = 86400;

// The protocol's words are parted by tabs and lines by line breaks, whatever a name holds.
std::string protocol_word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

int64_t protocol_time(Time time) { return time == kNever ? -1 : time.value; }

// "start 3 0 4", parted; a word that is no whole number of its kind is a fault.
class Decision {
 public:
  explicit Decision(const std::string& line) : words_(split_list(line, "\t")), line_(line) {}

  [[nodiscard]] bool is(std::string_view verb, size_t numbers) const {
    return words_.front() == verb && words_.size() == numbers + 1;
  }
  [[nodiscard]] Result<int64_t> number(size_t index) const {
    const std::string_view word = words_[index];
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && stop == word.data() + word.size()) return value;
    return nonsense();
  }
  [[nodiscard]] Error nonsense() const {
    return {fmt::format("the policy answered '{:.80}'", protocol_word(line_)), "",
            "an answer is start, preempt or wake with numbers, and done"};
  }

 private:
  std::vector<std::string_view> words_;
  const std::string& line_;
};

class ExternalPolicy final : public Policy {
 public:
  ExternalPolicy(std::string file, double patience)
      : file_(std::move(file)), patience_(static_cast<int64_t>(patience * 1000)) {}

  void begin(const ClusterView& view) override {
    said_ = "cluster";
    for (const GpuPool& pool : view.cluster().pools)
      said_ += fmt::format("\t{}\t{}", protocol_word(pool.type), pool.gpus);
    said_ += '\n';
  }

  void arrived(const ClusterView& view, JobIndex job) override {
    const Job& stated = view.job(job);
    said_ += fmt::format("job\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", job, stated.gpus, stated.least_gpus,
                         stated.most_gpus, stated.priority, stated.arrival.value, protocol_time(stated.deadline),
                         stated.memory.value, protocol_word(view.name_of(job)), protocol_word(view.user_of(job)),
                         protocol_word(view.group_of(job)), protocol_word(view.model_of(job)));
    for (TypeIndex type = 0; type < view.types(); ++type) {
      said_ += fmt::format("\t{}", view.usable(job, type) ? protocol_time(view.predicted(job, type)) : -1);
    }
    said_ += '\n';
    if (present_.size() <= job) present_.resize(job + 1);
    present_[job] = true;
  }

  void finished(const ClusterView& /*view*/, JobIndex job) override {
    said_ += fmt::format("finished\t{}\n", job);
    present_[job] = false;
  }

  void stopped(const ClusterView& view, JobIndex job) override {
    said_ += fmt::format("stopped\t{}\t{}\n", job, view.now().value);
  }

  void schedule(Scheduler& scheduler) override {
    if (const Status status = ask(scheduler); !status) scheduler.give_up(status.error());
  }

 private:
  Status ask(Scheduler& scheduler) {
    if (!process_) {
      auto started = file_.ends_with(".py") ? PolicyProcess::start_python(file_) : PolicyProcess::start_library(file_);
      if (!started) return started.error();
      process_ = *std::move(started);
    }
    said_ += fmt::format("schedule\t{}", scheduler.now().value);
    for (const int32_t free : scheduler.all_free()) said_ += fmt::format("\t{}", free);
    said_ += '\n';
    const auto answer = process_->ask(said_, patience_, [&] { return scheduler.goes_on(); });
    said_.clear();
    if (!answer) return answer.error();
    for (const std::string& line : *answer) {
      if (Status status = decide(line, scheduler); !status) return status;
    }
    return {};
  }

  Status decide(const std::string& line, Scheduler& scheduler) {
    const Decision decision(line);
    if (decision.is("start", 3)) return start(decision, scheduler);
    if (decision.is("preempt", 1)) return preempt(decision, scheduler);
    if (decision.is("wake", 1)) return wake(decision, scheduler);
    return decision.nonsense();
  }

  // A job that has been submitted and has not ended.
  [[nodiscard]] Result<JobIndex> job_of(const Decision& decision) const {
    const auto number = decision.number(1);
    if (!number) return number.error();
    const bool present =
        *number >= 0 && static_cast<uint64_t>(*number) < present_.size() && present_[static_cast<size_t>(*number)];
    if (present) return static_cast<JobIndex>(*number);
    return Error{fmt::format("the policy names job number {}, and there is no such job now", *number), "",
                 "name one of those that wait or run"};
  }

  Status start(const Decision& decision, Scheduler& scheduler) {
    const auto job = job_of(decision);
    if (!job) return job.error();
    const auto type = decision.number(2);
    const auto gpus = decision.number(3);
    if (!type || !gpus) return decision.nonsense();
    const std::string name = scheduler.name_of(*job);
    if (scheduler.is_running(*job)) {
      return Error{fmt::format("the policy starts job '{}', which runs already", name), "", "start what waits, once"};
    }
    if (*type < 0 || static_cast<uint64_t>(*type) >= scheduler.types()) {
      return Error{fmt::format("the policy starts job '{}' on type {}, and there is no such type", name, *type), "",
                   fmt::format("types are 0 to {}", scheduler.types() - 1)};
    }
    const auto on = static_cast<TypeIndex>(*type);
    const std::string& pool = scheduler.cluster().pools[on].type;
    if (!scheduler.usable(*job, on)) {
      return Error{fmt::format("the policy starts job '{}' on {}, where it cannot run", name, pool), "",
                   "look at its predicted durations, which say where it can"};
    }
    const Job& stated = scheduler.job(*job);
    const int64_t size = *gpus == 0 ? stated.gpus : *gpus;
    if (size != stated.gpus &&
        !(stated.elastic() && size >= std::max(stated.least_gpus, 1) && size <= stated.most_gpus)) {
      return Error{fmt::format("the policy starts job '{}' with {} GPUs, and it asks for {}", name, size, stated.gpus),
                   "", "only elastic jobs run with others"};
    }
    if (size > scheduler.free(on)) {
      return Error{fmt::format("the policy starts job '{}' with {} GPUs of {}, of which {} are free", name, size, pool,
                               scheduler.free(on)),
                   "", "start what fits"};
    }
    scheduler.start(*job, on, static_cast<int32_t>(size));
    return {};
  }

  Status preempt(const Decision& decision, Scheduler& scheduler) const {
    const auto job = job_of(decision);
    if (!job) return job.error();
    if (!scheduler.is_running(*job)) {
      return Error{fmt::format("the policy stops job '{}', which does not run", scheduler.name_of(*job)), "", ""};
    }
    scheduler.preempt(*job);
    return {};
  }

  static Status wake(const Decision& decision, Scheduler& scheduler) {
    const auto time = decision.number(1);
    if (!time) return time.error();
    if (*time <= scheduler.now().value) {
      return Error{fmt::format("the policy asks to be called at {:.9g} s, and it is {:.9g} s already",
                               seconds(Time(*time)), seconds(scheduler.now())),
                   "", "ask for a later time"};
    }
    scheduler.wake_at(Time(*time));
    return {};
  }

  std::string file_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<PolicyProcess> process_;
  std::string said_;           // what has happened since it was last asked
  std::vector<bool> present_;  // by job
};

}  // namespace

bool is_external_policy(const std::string& name) { return name.ends_with(".py") || name.ends_with(".so"); }

Status check_external_policy(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return {};
  return Error{fmt::format("there is no file '{}'", file), "--policy", "name a file of yours, .py or .so"};
}

std::unique_ptr<Policy> make_external_policy(const std::string& file, OptionReader& options) {
  // A bare name is a file here too, and not one that the loader is to search for.
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  return std::make_unique<ExternalPolicy>(path, options.number("timeout", kUsualPatience, 0.001, kMostPatience));
}

}  // namespace forerun::cluster
