// The limits of a worker: memory, no files written, and by Landlock which files can be opened at all.
#include "serve/worker_limits.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "serve/worker.h"

namespace forerun::serve {
namespace {

// Sanitizers map terabytes of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kAll = kRead | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                          LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                          LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                          LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                          LANDLOCK_ACCESS_FS_MAKE_SYM;

void set_limit(__rlimit_resource resource, rlim_t most) {
  const rlimit limit{most, most};
  setrlimit(resource, &limit);
}

bool allow_reading(int rules, const std::string& path) {
  const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return true;  // what is not there need not be read
  landlock_path_beneath_attr rule{};
  rule.allowed_access = kRead;
  rule.parent_fd = place;
  long added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  if (added != 0) {  // a file: it has no entries to list
    rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
    added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
  close(place);
  return added == 0;
}

}  // namespace

bool has_landlock() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1; }

bool open_only(const std::vector<std::string>& readable) {
  if (!has_landlock()) return false;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = kAll;
  const auto rules = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0));
  if (rules < 0) return false;
  bool held = true;
  for (const std::string& path : readable) held = held && allow_reading(rules, path);
  held = held && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(rules);
  return held;
}

void limit_worker(int64_t memory_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody to answer
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 0);
  if (memory_bytes > 0 && !kSanitized) set_limit(RLIMIT_AS, static_cast<rlim_t>(memory_bytes));
}

}  // namespace forerun::serve
