#include "cli/command_work.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/options_text.h"

namespace forerun::cli {

// Shows how far the work is, once it has taken longer than a moment: on a terminal one line that changes, in a log a line
// now and then.
class CommandWork::ProgressLine {
 public:
  explicit ProgressLine(bool terminal) : terminal_(terminal) {}
  ~ProgressLine() {
    if (shown_ && terminal_) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }

  void show(const Progress& progress) {
    const auto now = Clock::now();
    if (now - begin_ < (terminal_ ? kPatience : kLogInterval)) return;
    shown_ = true;
    if (!terminal_) begin_ = now;
    const std::string done = fmt::format("{}{}", progress.done, progress.total > 0 ? " of " : "");
    const std::string total = progress.total > 0 ? fmt::format("{}", progress.total) : "";
    fmt::print(stderr, "{}{}{} {}{}", terminal_ ? "\r\033[K" : "forerun: ", done, total, progress.what,
               terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::milliseconds kLogInterval{15'000};
  bool terminal_;
  Clock::time_point begin_ = Clock::now();
  bool shown_ = false;
};

void add_work_limits(CLI::App& verb, WorkLimits& limits) {
  const char* group = "Limits";
  verb.add_option_function<std::string>(
          "--time-limit",
          [&limits](const std::string& text) {
            const auto seconds = number_in(text);
            if (!seconds || !(*seconds > 0)) {
              throw CLI::ValidationError("--time-limit", "'" + text + "' is no number of seconds above 0");
            }
            limits.seconds = *seconds;
          },
          "Seconds after which to give up: exit code 1 and no answer")
      ->type_name("SECONDS")
      ->group(group);
  verb.add_option_function<std::string>(
          "--memory-limit",
          [&limits](const std::string& text) {
            const auto size = size_in(text);
            if (!size || size->value == 0) {
              throw CLI::ValidationError("--memory-limit", "'" + text + "' is no size: write 512MiB or 2GiB");
            }
            limits.memory = *size;
          },
          "Memory of this program beyond which to give up, as 512MiB or 2GiB")
      ->type_name("SIZE")
      ->group(group);
}

CommandWork::CommandWork(const WorkLimits& limits, Answer answer, std::initializer_list<int> signals) : stop_(signals) {
  control_.stop = stop_.token();
  control_.budget = Budget::of(limits.seconds, limits.memory);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal && answer == Answer::as_it_comes && isatty(STDOUT_FILENO) != 0) return;
  line_ = std::make_shared<ProgressLine>(terminal);
  control_.progress = [line = line_.get()](const Progress& progress) { line->show(progress); };
}

CommandWork::~CommandWork() = default;

}  // namespace forerun::cli
