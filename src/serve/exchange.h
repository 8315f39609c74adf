// What a request says and what is answered, apart from the library that speaks HTTP: routes take a Request and give a Reply.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace forerun::serve {

// What is looked at before a body is read. Header fields are empty where they are not given; one that is given twice is
// `doubled`.
struct RequestHead {
  std::string method;
  std::string target;  // the path as it was sent, not decoded
  std::string host, origin, site, cookie, authorization, content_type, if_none_match;
  bool doubled = false;
};

struct Request {
  RequestHead head;
  std::vector<std::string> path;             // decoded parts: {"api", "v1", "predict"}
  std::map<std::string, std::string> query;  // decoded
  std::string body;
};

// Text that comes piece by piece: server-sent events.
class EventStream;

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::shared_ptr<EventStream> events = {};  // in place of a body
  std::string file = {};                     // in place of a body: what it holds, from disk
};

using Done = std::function<void(Reply)>;

// A fault as RFC 9457 tells it: {"type","title","status","detail","where","remedy"}.
Reply problem(int status, const Error& error);
std::string problem_json(int status, const Error& error);
std::string_view title_of(int status);

// "/api/v1/results/ab%20c" in parts, each decoded once. An Error where a part is "..", holds a slash, a NUL or a control
// character after decoding, or where an escape is broken.
Result<std::vector<std::string>> parse_path(std::string_view target);
Result<std::string> percent_decoded(std::string_view text);

}  // namespace forerun::serve
