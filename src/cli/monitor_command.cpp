// forerun monitor: what a command does to the GPU and the network.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <optional>

#include "api/monitor.h"
#include "base/line_appender.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/html_option.h"
#include "report/monitor.h"

namespace forerun::cli {
namespace {

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
std::atomic<int> monitor_stop{0};  // the signal that ends the monitoring; SIGKILL: it came again
std::atomic<bool> monitor_pause{false};

void stop_monitor(int number) { monitor_stop = monitor_stop == 0 ? number : SIGKILL; }
void pause_monitor(int /*number*/) { monitor_pause = true; }

// Signals that end a program, or stop one that runs a command, are the recording's while this lives. What is ignored (nohup)
// stays ignored.
class MonitorSignals {
 public:
  explicit MonitorSignals(bool command) {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action {};
      action.sa_handler = kSignals[i] == SIGTSTP ? pause_monitor : stop_monitor;
      action.sa_flags = SA_RESTART;
      sigemptyset(&action.sa_mask);
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN || (kSignals[i] == SIGTSTP && !command)) continue;
      sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~MonitorSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  MonitorSignals(const MonitorSignals&) = delete;
  MonitorSignals& operator=(const MonitorSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

struct MonitorOptions {
  MonitorRequest recording;
  std::string out, svg;
  HtmlOption html;
  bool json = false;
};

// Where the answer goes, opened before the command is run.
struct MonitorOutputs {
  std::optional<LineAppender> records;
  std::optional<OutputFile> picture;
};

Status open_outputs(const MonitorOptions& options, MonitorOutputs& outputs) {
  if (!options.out.empty()) {
    auto opened = LineAppender::open(options.out);
    if (!opened) return opened.error();
    outputs.records.emplace(std::move(*opened));
  }
  if (!options.svg.empty()) {
    auto opened = OutputFile::create(options.svg);
    if (!opened) return opened.error();
    outputs.picture.emplace(std::move(*opened));
  }
  return {};
}

// All that can be written is, whatever cannot.
bool write_outputs(const monitor::Recording& recording, MonitorOutputs& outputs) {
  bool whole = true;
  const auto check = [&](const Status& status) {
    if (!status) fail(status.error());
    whole = whole && status.ok();
  };
  if (outputs.records) check(outputs.records->append(to_json(recording)));
  if (outputs.picture) {
    Status written = outputs.picture->write(to_svg(recording));
    check(written ? outputs.picture->finish() : written);
  }
  return whole;
}

int run_monitor(MonitorOptions& options) {
  MonitorOutputs outputs;
  if (const Status opened = open_outputs(options, outputs); !opened) return fail(opened.error());
  options.recording.signal = &monitor_stop;
  options.recording.pause = &monitor_pause;
  const auto recording = [&] {
    const MonitorSignals signals(!options.recording.command.empty());
    return monitor_command(options.recording);
  }();
  if (!recording) return fail(recording.error());
  bool whole = write_outputs(*recording, outputs);
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*recording)); !status) {
      fail(status.error());
      whole = false;
    }
  }
  fmt::print("{}", options.json ? to_json(*recording) + "\n" : to_text(*recording));
  return recording->exit_code == kDone && !whole ? static_cast<int>(kInputAtFault) : recording->exit_code;
}

}  // namespace

void add_monitor(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<MonitorOptions>();
  MonitorRequest& recording = options->recording;
  CLI::App* verb = app.add_subcommand("monitor", "What a command does to the GPU and the network: bursts and idles");
  verb->add_option("COMMAND", recording.command, "What to run, after --; its exit code becomes this program's");
  verb->add_option("--seconds", recording.seconds,
                   "Monitor for so long at most, then end the command; needed without one");
  verb->add_option("--hz", recording.hz, "Readings of the network a second")->capture_default_str();
  verb->add_option("--gpu-hz", recording.gpu_hz, "Readings of the GPU a second, at most --hz")->capture_default_str();
  verb->add_option("--gpu", recording.gpu, "Which GPU")->capture_default_str();
  const std::map<std::string, monitor::GpuSource> sources = {{"rates", monitor::GpuSource::kRates},
                                                             {"samples", monitor::GpuSource::kSamples},
                                                             {"gpm", monitor::GpuSource::kGpm}};
  verb->add_option("--gpu-source", recording.source,
                   "rates: the driver's last window (default); gpm: hardware counters every 100 ms, from Hopper on")
      ->transform(CLI::CheckedTransformer(sources).description("{rates,samples,gpm}"));
  verb->add_option("--interface", recording.interface, "One network interface; all but the loopback if not given");
  CLI::Option* space =
      verb->add_option("--netns", recording.network_namespace, "A network namespace: a name of `ip netns`, or a path");
  verb->add_option("--pid", recording.pid, "The network namespace of this process")->excludes(space);
  verb->add_option("--out", options->out, "Append the record (resources/1) to this file");
  verb->add_option("--svg", options->svg, "Draw the series");
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "Print the record");
  verb->footer(
      "Separates burst from idle by 2-means; patterns: I idle only, BIB both in turns, B burst only.\n"
      "  forerun monitor -- python train.py\n"
      "  forerun monitor --seconds 10 --interface eth0 --svg series.svg\n"
      "  forerun monitor --netns worker0 --hz 200 --out records.jsonl -- ./train.sh\n"
      "SIGINT (Ctrl-C), SIGTERM, SIGHUP and --seconds end the command with all it started, and what was seen is still\n"
      "reported: they get the signal (--seconds: SIGTERM), after 10 s or at a second signal SIGKILL. The exit code is "
      "the\n"
      "command's, 128 + signal where one ended it; without a command 128 + the signal that ended the monitoring.\n"
      "Without an NVIDIA GPU only the network is monitored.\n"
      "What the figures mean: docs/distributed.md.");
  verb->callback([options, &chosen] { chosen = [options] { return run_monitor(*options); }; });
}

}  // namespace forerun::cli
