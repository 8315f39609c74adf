// Fuzzes what a request goes through before it is answered: its address, who may ask, and the words of its question. The input is a
// few lines, method, address, Host, Origin, Cookie, Authorization, question's name, and then the body.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "serve/access.h"
#include "serve/routes.h"
#include "serve/words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  using namespace forerun::serve;
  std::string rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> lines;
  while (lines.size() < 7) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  const AccessRules rules{.token = "secret", .cookie = "forerun_1"};
  const RequestHead head{.method = lines[0],
                         .target = lines[1],
                         .host = lines[2],
                         .origin = lines[3],
                         .site = "",
                         .cookie = lines[4],
                         .authorization = lines[5]};
  if (!refused(head, rules)) {
    CHECK(head.target == "/api/v1/health" || head.cookie.find("secret") != std::string::npos ||
              head.authorization == "Bearer secret",
          "let in without the token");
    const std::string host = host_without_port(head.host);
    CHECK(host.size() == 9 || host == "[::1]", "let in by another name");
    CHECK(head.origin.empty() || head.origin == "http://" + head.host, "let in from another page");
  }
  if (const auto path = parse_path(head.target)) {
    for (const std::string& part : *path) {
      CHECK(part != ".." && part.find('/') == std::string::npos && part.find('\0') == std::string::npos,
            "a path that climbs");
    }
    (void)Routes::find(head.method, *path);
  }
  const std::string id(64, 'a');
  const AllowedQuestion* question = find_question(lines[6]);
  if (question == nullptr) question = find_question("predict");
  const auto admitted = admit(*question, rest, [&](const std::string& one) { return one == id; });
  if (!admitted) {
    CHECK(!admitted.error().what.empty(), "an error without what");
    return 0;
  }
  CHECK(admitted->uploads.size() <= 1, "an upload that is not there");
  CHECK(admit(*question, "{}", {}).ok(), "an empty question has no file");
  return 0;
}
