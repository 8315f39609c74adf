// Records what a command, or a stretch of time, does to the GPU and the network: series and their bursts and idles.
//
// One thread reads counters at fixed times and sleeps in between. Network figures are those of all interfaces of a network
// namespace but the loopback, or of one interface, whoever sends; GPU figures are those of the whole GPU.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/nvml.h"
#include "monitor/series.h"

namespace forerun::monitor {

struct RecordingOptions {
  std::vector<std::string> command;  // found on the path; empty: only wait
  double seconds = 0;                // at most so long, then the command is ended; 0: until it ends
  double hz = 50;                    // readings of the network a second
  double gpu_hz = 50;                // readings of the GPU a second, at most hz
  int gpu = 0;
  GpuSource source = GpuSource::kRates;  // Samples and GPM take milliseconds a reading: at most 10 a second
  std::string interface;                 // empty: all but the loopback
  std::string network_namespace;         // a name of /run/netns or a path; empty: see pid
  int pid = 0;                           // the namespace of this process; 0: the caller's
  std::stop_token stop;                  // ends the recording, and the command by SIGTERM
  // The same for programs that get signals: once it is a signal's number the recording ends, and the command by that
  // signal; SIGKILL: with no time to clean up.
  const std::atomic<int>* signal = nullptr;
  std::atomic<bool>* pause = nullptr;  // once it is true, the command and the caller stop until the caller is continued
};

// What a command has to clean up before it is killed, after the signal that ends it.
inline constexpr double kGraceSeconds = 10;

struct Recording {
  std::vector<std::string> command;
  int exit_code = 0;  // of the command, 128 and the signal's number where one ended it; without one: of `signal`, or 0
  double seconds = 0;
  std::string gpu_model, driver;
  std::string gpu_missing;  // why there is no GPU series; empty where there is one
  GpuSource source = GpuSource::kNone;
  std::string interface;
  Series gpu, memory;    // percent; empty without a GPU
  Series send, receive;  // bytes a second
  double cpu_share = 0;  // of one core, that recording took
};

Result<Recording> record(const RecordingOptions& options);

// What always counts as idle: percent of the GPU, percent of its memory, bytes a second.
inline constexpr double kGpuFloor = 1, kMemoryFloor = 0.2, kNetworkFloor = 12'500;

}  // namespace forerun::monitor
