// Who is let in and who is not.
#include "serve/access.h"

#include <gtest/gtest.h>

namespace forerun::serve {
namespace {

const AccessRules kRules{.token = std::string(64, 'a'), .cookie = "forerun_80", .hosts = {"box.lan"}};

RequestHead script(const std::string& method = "GET") {
  return {
      .method = method, .target = "/api/v1/results", .host = "127.0.0.1:80", .authorization = "Bearer " + kRules.token};
}
RequestHead browser(const std::string& method) {
  return {.method = method,
          .target = "/api/v1/results",
          .host = "localhost:80",
          .origin = "http://localhost:80",
          .site = "same-origin",
          .cookie = "other=1; forerun_80=" + kRules.token};
}
int status_of(const RequestHead& head, std::string_view link = {}) {
  const auto reply = refused(head, kRules, link);
  return reply ? reply->status : 200;
}

TEST(Access, ScriptsAndThePageAreLetIn) {
  for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
    EXPECT_EQ(status_of(script(method)), 200) << method;
    EXPECT_EQ(status_of(browser(method)), 200) << method;
  }
}

TEST(Access, ATokenIsNeeded) {
  for (const std::string token : {"", "Bearer ", "Bearer a", "Basic abc"}) {
    RequestHead head = script();
    head.authorization = token;
    EXPECT_EQ(status_of(head), 401) << token;
  }
  RequestHead longer = script();
  longer.authorization += "a";
  EXPECT_EQ(status_of(longer), 401);
  RequestHead other = browser("GET");
  other.cookie = "forerun_81=" + kRules.token;
  EXPECT_EQ(status_of(other), 401);
  RequestHead health = script();
  health.authorization = "";
  health.target = "/api/v1/health";
  EXPECT_EQ(status_of(health), 200);
  EXPECT_FALSE(same_secret("", ""));
}

// A page of evil.example whose name was bent to 127.0.0.1 sends its own name, whatever else it sends.
TEST(Access, AReboundNameIsRefusedOnEveryMethod) {
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    for (const char* host :
         {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:80", "",
          "127.0.0.1@evil.example", "127.0.0.1:80:80", "[::1", "localhost:", "localhost:abc", "0.0.0.0"}) {
      RequestHead head = script(method);
      head.host = host;
      EXPECT_EQ(status_of(head), 403) << method << " " << host;
      head.target = "/api/v1/health";
      EXPECT_EQ(status_of(head), 403) << method << " " << host;
    }
  }
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:80", "box.lan:80"}) {
    RequestHead head = script();
    head.host = host;
    EXPECT_EQ(status_of(head), 200) << host;
  }
}

TEST(Access, OtherPagesAreRefused) {
  for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
    RequestHead head = browser(method);
    for (const char* origin :
         {"http://evil.example", "null", "http://localhost:81", "https://localhost:80", "http://localhost"}) {
      head.origin = origin;
      EXPECT_EQ(status_of(head), 403) << method << " " << origin;
    }
    head = browser(method);
    for (const char* site : {"cross-site", "same-site"}) {
      head.site = site;
      EXPECT_EQ(status_of(head), 403) << method << " " << site;
    }
  }
  // With the cookie alone nothing is changed: a form of elsewhere sends no Origin that is ours.
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    RequestHead head = browser(method);
    head.origin = "";
    EXPECT_EQ(status_of(head), 403) << method;
  }
}

TEST(Access, TheLinkLetsInOnceAndLeavesNoTokenInTheAddress) {
  RequestHead head{.method = "GET", .target = "/", .host = "127.0.0.1:80", .site = "none"};
  EXPECT_EQ(status_of(head, kRules.token), 200);
  EXPECT_EQ(status_of(head, "wrong"), 401);
  head.target = "/api/v1/results";
  EXPECT_EQ(status_of(head, kRules.token), 401) << "the token of a query counts for the page alone";
  const Reply reply = let_in(kRules);
  EXPECT_EQ(reply.status, 303);
  std::string cookie, location;
  for (const auto& [name, value] : reply.headers) (name == "Set-Cookie" ? cookie : location) = value;
  EXPECT_EQ(location, "/");
  EXPECT_NE(cookie.find("HttpOnly; SameSite=Strict"), std::string::npos);
}

TEST(Access, AHeaderGivenTwiceIsRefused) {
  RequestHead head = script();
  head.doubled = true;
  EXPECT_EQ(status_of(head), 400);
}

TEST(Paths, TraversalIsRefused) {
  for (const char* target :
       {"",      "api",   "/..",    "/api/../x", "/api/%2e%2e/x", "/api/%2E%2E", "/a%2fb", "/a%5cb",
        "/a\\b", "/a;b",  "/a%3bb", "/a%00b",    "/a%0ab",        "/%",          "/%g0",   "/%2",
        "//a",   "/a//b", "/./a",   "/%ff",      "/%c0%af",       "/%ed%a0%80",  "/\x01"}) {
    EXPECT_FALSE(parse_path(target).ok()) << target;
  }
  EXPECT_FALSE(parse_path("/" + std::string(5000, 'a')).ok());
  EXPECT_EQ(*parse_path("/"), std::vector<std::string>());
  EXPECT_EQ(*parse_path("/api/v1/"), (std::vector<std::string>{"api", "v1"}));
  EXPECT_EQ(*parse_path("/a/%252e%252e"), (std::vector<std::string>{"a", "%2e%2e"})) << "decoded once";
  EXPECT_EQ(*parse_path("/tags/%C3%BC%20x"), (std::vector<std::string>{"tags", "ü x"}));
}

}  // namespace
}  // namespace forerun::serve
