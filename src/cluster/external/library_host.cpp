// The process of a policy that is a shared library: keeps the picture of the cluster that forerun_policy.h describes,
// calls the library, and says what it decided. Runs after fork(): it never returns to what the parent was doing.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/options_text.h"
#include "cluster/external/forerun_policy.h"
#include "cluster/external/policy_process.h"

namespace forerun::cluster {
namespace {

constexpr int kHostFault = 1;  // exit code

void write_all(int end, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(end, text.data(), text.size());
    if (wrote <= 0) _exit(kHostFault);  // nobody listens any more
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

// Words of the protocol, which our own process wrote: there is nothing to doubt.
int64_t number_of(std::string_view word) {
  int64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}
int32_t count_of(std::string_view word) { return static_cast<int32_t>(number_of(word)); }
int64_t time_of(std::string_view word) {
  const int64_t value = number_of(word);
  return value < 0 ? FORERUN_NEVER : value;
}

// A job with what its pointers lead to.
struct HostedJob : forerun_job {
  std::vector<int64_t> durations;
  std::array<std::string, 4> names;
  int64_t attained_before = 0;  // up to when it last stopped
};

class LibraryHost : private forerun_cluster {
 public:
  LibraryHost(void (*schedule)(forerun_cluster*), int end) : forerun_cluster{}, schedule_(schedule), end_(end) {
    forerun_cluster::start = [](forerun_cluster* self, const forerun_job* job, uint32_t type, int32_t size) {
      of(self).start_job(of(self).known(job), type, size);
    };
    forerun_cluster::preempt = [](forerun_cluster* self, const forerun_job* job) {
      of(self).stop_job(of(self).known(job));
    };
    forerun_cluster::wake_at = [](forerun_cluster* self, int64_t time) {
      of(self).answer_ += fmt::format("wake\t{}\n", time);
    };
    forerun_cluster::fastest_free = [](const forerun_cluster* self, const forerun_job* job) {
      return of(self).fastest(*job);
    };
  }

  void take(const std::vector<std::string_view>& words) {
    const std::string_view verb = words.front();
    if (verb == "cluster") set_cluster(words);
    if (verb == "job") add_job(words);
    if (verb == "finished") jobs_.erase(static_cast<uint32_t>(number_of(words[1])));
    if (verb == "stopped") release(jobs_.at(static_cast<uint32_t>(number_of(words[1]))), number_of(words[2]));
    if (verb == "schedule") ask(words);
  }

 private:
  static LibraryHost& of(forerun_cluster* self) { return *static_cast<LibraryHost*>(self); }
  static const LibraryHost& of(const forerun_cluster* self) { return *static_cast<const LibraryHost*>(self); }
  HostedJob& known(const forerun_job* job) { return jobs_.at(job->number); }

  void set_cluster(const std::vector<std::string_view>& words) {
    for (size_t i = 1; i + 1 < words.size(); i += 2) {
      names_.emplace_back(words[i]);
      all_.push_back(count_of(words[i + 1]));
    }
    left_ = all_;
    for (const std::string& name : names_) name_texts_.push_back(name.c_str());
    types = static_cast<uint32_t>(all_.size());
    type_names = name_texts_.data();
    gpus = all_.data();
    free = left_.data();
  }

  void add_job(const std::vector<std::string_view>& words) {
    HostedJob& job = jobs_[static_cast<uint32_t>(number_of(words[1]))];
    job.number = static_cast<uint32_t>(number_of(words[1]));
    job.gpus = count_of(words[2]);
    job.least_gpus = count_of(words[3]);
    job.most_gpus = count_of(words[4]);
    job.priority = count_of(words[5]);
    job.submit = number_of(words[6]);
    job.deadline = time_of(words[7]);
    job.memory = number_of(words[8]);
    for (size_t i = 0; i < job.names.size(); ++i) job.names[i] = words[9 + i];
    for (size_t i = 13; i < words.size(); ++i) job.durations.push_back(time_of(words[i]));
    job.predicted = job.durations.data();
    job.predicted_fastest = *std::min_element(job.durations.begin(), job.durations.end());
    job.id = job.names[0].c_str();
    job.user = job.names[1].c_str();
    job.group = job.names[2].c_str();
    job.model = job.names[3].c_str();
    job.type = -1;
  }

  static void release(HostedJob& job, int64_t when) {
    job.attained_before += when - job.since;
    job.attained = job.attained_before;
    job.type = -1;
    job.held = 0;
  }

  // What is asked for wrongly is for our own process to refuse.
  void start_job(HostedJob& job, uint32_t type, int32_t size) {
    answer_ += fmt::format("start\t{}\t{}\t{}\n", job.number, type, size);
    if (type >= types || job.type >= 0) return;
    job.type = static_cast<int32_t>(type);
    job.held = size == 0 ? job.gpus : size;
    job.since = now;
    left_[type] -= job.held;
  }

  void stop_job(HostedJob& job) {
    answer_ += fmt::format("preempt\t{}\n", job.number);
    if (job.type < 0) return;
    left_[static_cast<size_t>(job.type)] += job.held;
    release(job, now);
  }

  [[nodiscard]] int32_t fastest(const forerun_job& job) const {
    int32_t best = -1;
    for (uint32_t type = 0; type < types; ++type) {
      if (job.predicted[type] == FORERUN_NEVER || left_[type] < job.gpus) continue;
      if (best < 0 || job.predicted[type] < job.predicted[best]) best = static_cast<int32_t>(type);
    }
    return best;
  }

  void ask(const std::vector<std::string_view>& words) {
    now = number_of(words[1]);
    for (size_t type = 0; type < left_.size(); ++type) left_[type] = count_of(words[2 + type]);
    waiting_jobs_.clear();
    running_jobs_.clear();
    for (auto& [index, job] : jobs_) {
      if (job.type >= 0) job.attained = job.attained_before + (now - job.since);
      (job.type >= 0 ? running_jobs_ : waiting_jobs_).push_back(&job);
    }
    waiting = waiting_jobs_.data();
    waiting_count = waiting_jobs_.size();
    running = running_jobs_.data();
    running_count = running_jobs_.size();
    answer_.clear();
    schedule_(this);
    write_all(end_, answer_ + "done\n");
  }

  void (*schedule_)(forerun_cluster*);
  int end_;
  std::string answer_;
  std::vector<std::string> names_;
  std::vector<const char*> name_texts_;
  std::vector<int32_t> all_, left_;
  std::map<uint32_t, HostedJob> jobs_;  // that are present, by number; their addresses stay
  std::vector<const forerun_job*> waiting_jobs_, running_jobs_;
};

// The library's function; says what is wrong with it and ends the process where there is none.
template <class Function>
Function function_of(void* library, const char* name, int end) {
  auto function = reinterpret_cast<Function>(dlsym(library, name));  // NOLINT: POSIX's way
  if (function != nullptr) return function;
  write_all(end,
            fmt::format("fault\tthe library does not define {}(): forerun_policy.h says what it is to be\n", name));
  _exit(kHostFault);
}

}  // namespace

void serve_library(const std::string& file, int end) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    write_all(end, fmt::format("fault\tthe library cannot be loaded: {}\n", dlerror()));
    _exit(kHostFault);
  }
  const auto abi = function_of<uint32_t (*)()>(library, "forerun_policy_abi", end);
  if (const uint32_t version = abi(); version < 1 || version > FORERUN_POLICY_ABI) {
    write_all(end, fmt::format("fault\tthe library is of ABI {}, and this program speaks 1 to {}\n", version,
                               FORERUN_POLICY_ABI));
    _exit(kHostFault);
  }
  LibraryHost host(function_of<void (*)(forerun_cluster*)>(library, "forerun_policy_schedule", end), end);
  std::string received;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = read(end, buffer.data(), buffer.size());
    if (got <= 0) _exit(0);
    received.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t stop = 0; (stop = received.find('\n', begin)) != std::string::npos; begin = stop + 1) {
      host.take(split_list(std::string_view(received).substr(begin, stop - begin), "\t"));
    }
    received.erase(0, begin);
  }
}

}  // namespace forerun::cluster
