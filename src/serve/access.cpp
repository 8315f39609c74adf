#include "serve/access.h"

#include <algorithm>

namespace forerun::serve {
namespace {

// "a=1; b=2": the value of a cookie.
std::string cookie_of(std::string_view cookies, std::string_view name) {
  for (size_t from = 0; from < cookies.size();) {
    const size_t end = std::min(cookies.find(';', from), cookies.size());
    std::string_view one = cookies.substr(from, end - from);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') {
      return std::string(one.substr(name.size() + 1));
    }
    from = end + 1;
  }
  return "";
}

bool is_allowed_host(std::string_view host, const AccessRules& rules) {
  std::string name = host_without_port(host);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return true;
  return !name.empty() && std::find(rules.hosts.begin(), rules.hosts.end(), name) != rules.hosts.end();
}

bool changes_something(std::string_view method) { return method != "GET" && method != "HEAD"; }

Reply forbidden(const char* what, const char* where, const char* remedy) { return problem(403, {what, where, remedy}); }

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned char differs = given.size() == secret.size() && !secret.empty() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    differs = static_cast<unsigned char>(differs | ((i < given.size() ? given[i] : '\0') ^ secret[i]));
  }
  return differs == 0;
}

std::string host_without_port(std::string_view host) {
  const size_t bracket = host.starts_with('[') ? host.find(']') : std::string_view::npos;
  if (host.starts_with('[') && bracket == std::string_view::npos) return "";
  const size_t end = bracket == std::string_view::npos ? std::min(host.find(':'), host.size()) : bracket + 1;
  const std::string_view rest = host.substr(end);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() && (rest.front() != ':' || rest.size() < 2 || rest.size() > 6 ||
                        !std::all_of(rest.begin() + 1, rest.end(), is_digit))) {
    return "";
  }
  return std::string(host.substr(0, end));
}

std::optional<Reply> refused(const RequestHead& head, const AccessRules& rules, std::string_view link_token) {
  if (head.doubled) return problem(400, {"a header that decides who may ask is given twice", "", "give it once"});
  if (!is_allowed_host(head.host, rules)) {
    return forbidden("this host name is not one of the server's", "Host",
                     "use the printed link; other names need --allow-host");
  }
  if (!head.origin.empty() && head.origin != "http://" + head.host) {
    return forbidden("another page asks", "Origin", "open the printed link; scripts send no Origin");
  }
  if (head.target == "/api/v1/health" && head.method == "GET") return std::nullopt;
  const bool by_link = head.method == "GET" && head.target == "/" && same_secret(link_token, rules.token);
  if (by_link) return std::nullopt;
  // Another port of this machine is "same-site" to a browser, and is sent our cookie's host.
  if (head.site == "cross-site" || head.site == "same-site") {
    return forbidden("another site asks", "Sec-Fetch-Site", "open the printed link");
  }
  constexpr std::string_view kBearer = "Bearer ";
  if (head.authorization.starts_with(kBearer)) {
    if (same_secret(std::string_view(head.authorization).substr(kBearer.size()), rules.token)) return std::nullopt;
  } else if (same_secret(cookie_of(head.cookie, rules.cookie), rules.token)) {
    if (!changes_something(head.method) || !head.origin.empty()) return std::nullopt;
    return forbidden("a change that comes with a cookie must say which page it comes from", "Origin",
                     "scripts send Authorization: Bearer TOKEN");
  }
  Reply reply = problem(401, {"the token is missing or wrong", "Authorization",
                              "open the link that `forerun serve` printed; scripts send Authorization: Bearer TOKEN"});
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

Reply let_in(const AccessRules& rules) {
  Reply reply{.status = 303, .type = "text/plain; charset=utf-8", .body = "/\n"};
  reply.headers.emplace_back("Location", "/");
  reply.headers.emplace_back("Set-Cookie", rules.cookie + "=" + rules.token + "; Path=/; HttpOnly; SameSite=Strict");
  return reply;
}

}  // namespace forerun::serve
