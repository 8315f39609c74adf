// An answer as one HTML file that opens anywhere and asks no network for anything, and the same page as a server gives it.
//
// The page is built from web/ and embedded; what is added here is data: JSON in a block that no browser runs. Its scripts and
// styles are held to their hashes by a content policy in the file itself, so that nothing in a model's or a trace's names can
// become one. What charts are made of an answer is the page's affair (web/src/views): it goes by the answer's `schema`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forerun::page {

struct PageContent {
  std::string verb;     // "predict", "memory replay"
  std::string command;  // as a user types it
  std::string answers;  // what the verb prints with --json: an object, one a line, or a list of them
  std::vector<std::pair<std::string, std::string>> series;  // by name, JSON: what charts need beside the answer
  std::string made;                                         // when: "2026-11-18T04:20:00Z"
  std::string version;                                      // of Forerun
};

std::string report_page(const PageContent& content);

// The page that asks a server; `version` is Forerun's. It finds the questions below `api`, a path of the same server.
struct ServerContent {
  std::string version;
  std::string api = "/api/v1";
};

std::string server_page(const ServerContent& content);

// The content policy of server_page, for its header. It has 'frame-ancestors', which a file cannot state.
std::string server_policy();

}  // namespace forerun::page
