#include "serve/exchange.h"

#include <algorithm>

#include "base/json_writer.h"

namespace forerun::serve {
namespace {

constexpr size_t kLongestTarget = 4096;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

Error bad_target(const char* what) { return {what, "the address", "GET /api/v1/openapi.json lists the routes"}; }

// Whether it is UTF-8 as RFC 3629 has it.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t more = first < 0x80                    ? 0
                        : first >= 0xc2 && first < 0xe0 ? 1
                        : (first & 0xf0U) == 0xe0       ? 2
                        : first >= 0xf0 && first < 0xf5 ? 3
                                                        : 9;
    if (more == 9 || i + more >= text.size()) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0U) != 0x80) return false;
    }
    const auto second = more == 0 ? 0 : static_cast<unsigned char>(text[i + 1]);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second >= 0x90)) {
      return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace

std::string_view title_of(int status) {
  switch (status) {
    case 400: return "the question is at fault";
    case 401: return "no token";
    case 403: return "refused";
    case 404: return "not there";
    case 405: return "another method is needed";
    case 409: return "not now";
    case 413: return "too large";
    case 415: return "another content type is needed";
    case 422: return "no answer within the limits";
    case 429: return "too many at once";
    case 503: return "the server ends";
    default: return "the server is at fault";
  }
}

std::string problem_json(int status, const Error& error) {
  JsonWriter json;
  json.begin_object()
      .field("type", "about:blank")
      .field("title", title_of(status))
      .field("status", status)
      .field("detail", error.what)
      .field("where", error.where)
      .field("remedy", error.remedy)
      .end_object();
  return json.take();
}

Reply problem(int status, const Error& error) {
  return {.status = status, .type = "application/problem+json", .body = problem_json(status, error)};
}

Result<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
    if (high < 0 || low < 0) return bad_target("has a '%' that is no escape");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (std::any_of(out.begin(), out.end(), is_control)) return bad_target("has a control character");
  if (!is_utf8(out)) return bad_target("is no UTF-8");
  return out;
}

Result<std::vector<std::string>> parse_path(std::string_view target) {
  if (target.empty() || target.front() != '/') return bad_target("does not begin with '/'");
  if (target.size() > kLongestTarget) return bad_target("is longer than 4096 characters");
  std::vector<std::string> parts;
  for (size_t from = 1; from <= target.size();) {
    const size_t end = std::min(target.find('/', from), target.size());
    auto part = percent_decoded(target.substr(from, end - from));
    if (!part) return part.error();
    if (*part == ".." || *part == "." || part->find_first_of("/\\;") != std::string::npos) {
      return bad_target("has a part that no route has");
    }
    if (!part->empty()) {
      parts.push_back(std::move(*part));
    } else if (end != target.size()) {
      return bad_target("has an empty part");
    }
    from = end + 1;
  }
  return parts;
}

}  // namespace forerun::serve
