// The routes, in one list: what the server answers and what its contract (openapi.h) says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/service.h"

namespace forerun::serve {

struct Routes {
  using Handler = void (Service::*)(const Request&, const std::vector<std::string>&, const Done&);

  struct Route {
    const char* method;
    const char* path;  // "/api/v1/results/{id}"; {…} is captured
    const char* does;
    Handler handler;
    std::vector<const char*> query = {};
    bool aside = false;  // it waits for the store
  };
  static const std::vector<Route>& list();

  struct Found {
    const Route* route = nullptr;
    std::vector<std::string> captured;
    std::vector<std::string> methods;  // of other routes with that path
  };
  static Found find(std::string_view method, const std::vector<std::string>& path);
};

}  // namespace forerun::serve
