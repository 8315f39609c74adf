#include "serve/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "guard/models_version.h"
#include "serve/http_server.h"
#include "serve/jobs.h"
#include "serve/service.h"
#include "serve/worker.h"
#include "store/postgres_database.h"
#include "store/random_hex.h"

namespace forerun::serve {
namespace {

constexpr auto kBeat = std::chrono::seconds(5);

// A worker's memory: half of the machine's, 8 GiB at most.
int64_t worker_memory() {
  const int64_t all = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::min(std::max(all / 2, int64_t{1} << 30), int64_t{8} << 30);
}

Result<std::string> uploads_folder(const ServeOptions& options) {
  if (!options.uploads.empty()) return options.uploads;
  if (!store::names_postgres(options.store)) return options.store + ".uploads";
  const std::string own = user_data_folder();
  if (own.empty()) return Error{"there is no home to keep uploads in", "HOME", "set HOME or XDG_DATA_HOME"};
  return own + "/uploads";
}

void wait_for(const std::stop_token& stop, Jobs& jobs) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    woken.wait_for(lock, stop, kBeat, [&] { return stop.stop_requested(); });
    jobs.beat();
  }
}

std::string shown_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

bool is_any_address(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

bool is_loopback(const std::string& host) { return host == "127.0.0.1" || host == "::1"; }

std::string user_data_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/') return std::string(data) + "/forerun";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/share/forerun" : "";
}

Status serve(const ServeOptions& options, const std::stop_token& stop,
             const std::function<void(const Serving&)>& ready) {
  if (is_any_address(options.host) && options.allow_hosts.empty()) {
    return Error{"no name says how others call this machine", "--host " + options.host,
                 "give it: --allow-host NAME, or listen at one address"};
  }
  const auto version = guard::models_version();
  if (!version) return version.error();
  auto listening = HttpServer::bind({.address = options.host, .port = options.port});
  if (!listening) return listening.error();
  HttpServer& http = **listening;
  const auto store = store::Store::open(options.store, {.create = options.create_store});
  if (!store) return store.error();
  const auto folder = uploads_folder(options);
  if (!folder) return folder.error();
  const auto uploads = Uploads::open(*folder, {});
  if (!uploads) return uploads.error();
  Workers workers({.program = options.program,
                   .uploads = (*uploads)->folder(),
                   .memory_bytes = worker_memory(),
                   .plain = std::clamp<size_t>(std::thread::hardware_concurrency(), 2, 8)});
  Jobs jobs(**store, workers);
  // The address that it listens at is a name of the server too.
  std::vector<std::string> hosts = options.allow_hosts;
  for (std::string& host : hosts) {
    std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  }
  if (!is_any_address(options.host)) hosts.push_back(shown_host(options.host));
  const std::string token = options.token.empty() ? store::random_hex(32) : options.token;
  Service service({.store = **store,
                   .workers = workers,
                   .jobs = jobs,
                   .uploads = **uploads,
                   .access = {.token = token, .cookie = fmt::format("forerun_{}", http.port()), .hosts = hosts},
                   .made_by = *version,
                   .bounded_workers = has_landlock()});
  if (Status started = http.start(service); !started.ok()) return started;
  const std::string address =
      fmt::format("http://{}:{}", is_any_address(options.host) ? hosts.front() : shown_host(options.host), http.port());
  if (ready) {
    ready({.address = address,
           .link = address + "/?token=" + token,
           .token = token,
           .store = (*store)->name(),
           .new_store = (*store)->is_new(),
           .bounded_workers = has_landlock()});
  }
  wait_for(stop, jobs);
  // Replies that are owed come first, so that no connection sleeps when connections end.
  workers.stop();
  jobs.close();
  service.stop();
  http.stop();
  return {};
}

}  // namespace forerun::serve
