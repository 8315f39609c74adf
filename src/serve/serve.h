// "forerun serve": store, workers, routes and connections put together, until somebody asks it to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::serve {

struct ServeOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: a free one
  std::string store;  // a path or postgresql://...
  bool create_store = true;
  std::string uploads;                        // folder; empty: beside a store in a file, else in the user's data folder
  std::vector<std::string> allow_hosts = {};  // names by which it may be called, beside those of loopback
  std::string token = {};                     // empty: a random one
  std::string program;                        // what workers are started from
};

// What can be told once it listens.
struct Serving {
  std::string address;  // "http://127.0.0.1:43211"
  std::string link;     // with the token
  std::string token;
  std::string store;  // without a password
  bool new_store = false;
  bool bounded_workers = true;  // the kernel bounds what they open
};

// Returns when it was asked to stop, which is its usual end.
Status serve(const ServeOptions& options, const std::stop_token& stop,
             const std::function<void(const Serving&)>& ready);

bool is_loopback(const std::string& host);
bool is_any_address(const std::string& host);  // 0.0.0.0 and ::
// The user's own folder for data ($XDG_DATA_HOME/forerun, ~/.local/share/forerun); empty where there is no home.
std::string user_data_folder();

}  // namespace forerun::serve
