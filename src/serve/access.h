// Who may ask: the rules that keep other pages, other users and other machines out.
//
// - Host must be a name of this machine's loopback, or one that --allow-host gives: a page of elsewhere whose name is bent to 127.0.0.1
//   (rebinding) still says its own. On every method.
// - Every route but /api/v1/health needs the token: as a bearer for scripts, or as the cookie that the printed link sets.
// - What changes something and comes with a cookie must say that it comes from our own page (Origin). An Origin of elsewhere and
//   a browser's word that another site asks (Sec-Fetch-Site) are refused on every method.
// There are no CORS headers, so that no other page reads an answer. Tokens are compared in a time that does not tell how much
// of them was right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/exchange.h"

namespace forerun::serve {

struct AccessRules {
  std::string token;
  std::string cookie;                   // its name: of this port alone, since cookies are shared between ports
  std::vector<std::string> hosts = {};  // allowed beside those of loopback
};

// Nothing where it may pass; else the answer. `link_token`: what the query of GET / has.
std::optional<Reply> refused(const RequestHead& head, const AccessRules& rules, std::string_view link_token = {});

// GET /?token=...: the cookie, and the way to the page without the token in its address.
Reply let_in(const AccessRules& rules);

bool same_secret(std::string_view given, std::string_view secret);

// The host of "localhost:8080", "[::1]:80", "127.0.0.1"; empty where it is none of that form.
std::string host_without_port(std::string_view host);

}  // namespace forerun::serve
