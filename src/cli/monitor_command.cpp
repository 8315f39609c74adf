// forerun monitor: what a command does to the GPU and the network.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <map>

#include "cli/command.h"
#include "monitor/recording.h"
#include "report/monitor.h"

namespace forerun::cli {
namespace {

std::atomic<bool> monitor_stopped{false};

struct MonitorOptions {
  monitor::RecordingOptions recording;
  std::string out, svg;
  bool json = false;
};

Status write_monitor_file(const std::string& path, const std::string& text, bool append) {
  std::ofstream file(path, append ? std::ios::app : std::ios::trunc);
  file << text;
  file.flush();
  if (!file) return Error{"cannot be written", path, "give another path"};
  return {};
}

int monitor_command(MonitorOptions& options) {
  options.recording.stop = &monitor_stopped;
  const auto before = std::signal(SIGINT, [](int) { monitor_stopped = true; });
  const auto recording = monitor::record(options.recording);
  std::signal(SIGINT, before);
  if (!recording) return fail(recording.error());
  if (!options.out.empty()) {
    if (const Status done = write_monitor_file(options.out, to_json(*recording) + "\n", true); !done) {
      return fail(done.error());
    }
  }
  if (!options.svg.empty()) {
    if (const Status done = write_monitor_file(options.svg, to_svg(*recording), false); !done)
      return fail(done.error());
  }
  fmt::print("{}", options.json ? to_json(*recording) + "\n" : to_text(*recording));
  return recording->exit_code;
}

}  // namespace

void add_monitor(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<MonitorOptions>();
  monitor::RecordingOptions& recording = options->recording;
  CLI::App* verb = app.add_subcommand("monitor", "What a command does to the GPU and the network: bursts and idles");
  verb->add_option("COMMAND", recording.command, "What to run, after --; its exit code becomes this program's");
  verb->add_option("--seconds", recording.seconds, "Monitor for so long at most; needed without a command");
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
  verb->add_flag("--json", options->json, "Print the record");
  verb->footer(
      "Separates burst from idle by 2-means; patterns: I idle only, BIB both in turns, B burst only.\n"
      "  forerun monitor -- python train.py\n"
      "  forerun monitor --seconds 10 --interface eth0 --svg series.svg\n"
      "  forerun monitor --netns worker0 --hz 200 --out records.jsonl -- ./train.sh\n"
      "Ctrl-C ends the monitoring and still reports. Without an NVIDIA GPU only the network is monitored.\n"
      "What the figures mean: docs/distributed.md.");
  verb->callback([options, &chosen] { chosen = [options] { return monitor_command(*options); }; });
}

}  // namespace forerun::cli
