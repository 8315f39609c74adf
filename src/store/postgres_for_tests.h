// A PostgreSQL of the tests' own: made in a temporary folder, reached by a socket there, gone with the process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace forerun::store {

class PostgresForTests {
 public:
  // Started when it is first asked for.
  static PostgresForTests& instance() {
    static PostgresForTests server;
    return server;
  }

  // Why there is none to test with; empty: it runs, or should.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  // Why one that is installed does not run: a fault of the tests' machine, which no test passes over.
  [[nodiscard]] const std::string& broken() const { return broken_; }

  // The name of a store in a new and empty database.
  std::string new_database() {
    const std::string base = "base" + std::to_string(++databases_);
    const auto [code, out] = run("createdb -h " + folder_ + " -U postgres " + base);
    EXPECT_EQ(code, 0) << out;
    return "postgresql://postgres@/" + base + "?host=" + folder_;
  }

  // SQL of others than the store.
  void execute(const std::string& store, const std::string& sql) {
    const auto [code, out] = run("psql -q -v ON_ERROR_STOP=1 '" + store + "' -c \"" + sql + "\"");
    EXPECT_EQ(code, 0) << out;
  }

  PostgresForTests(const PostgresForTests&) = delete;
  PostgresForTests& operator=(const PostgresForTests&) = delete;

 private:
  PostgresForTests() {
    for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error_)) {
      if (std::filesystem::exists(entry.path() / "bin/initdb")) programs_ = entry.path() / "bin";
    }
    if (programs_.empty()) {
      missing_ = "there is no PostgreSQL server here (Debian: postgresql)";
      return;
    }
    std::string pattern = "/tmp/forerun-pg-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      broken_ = "no temporary folder";
      return;
    }
    folder_ = pattern;
    owner_ = getpid();
    if (geteuid() == 0 && std::system(("chown postgres " + folder_).c_str()) != 0) {  // initdb refuses root
      broken_ = "there is no user postgres to run it as";
      return;
    }
    const auto [made, said] = run("initdb -A trust -U postgres -D " + folder_ + "/data");
    const auto [started, log] = run("pg_ctl -w -D " + folder_ + "/data -l " + folder_ + "/log -o \"-k " + folder_ +
                                    " -c listen_addresses=''\" start");
    if (made != 0 || started != 0) broken_ = "PostgreSQL does not start: " + said + log;
  }

  ~PostgresForTests() {
    if (folder_.empty() || getpid() != owner_) return;
    run("pg_ctl -m immediate -D " + folder_ + "/data stop");
    std::filesystem::remove_all(folder_, error_);
  }

  struct Outcome {
    int code;
    std::string out;
  };
  Outcome run(const std::string& command) {
    const std::string as = geteuid() == 0 ? "cd / && runuser -u postgres -- " : "";
    FILE* pipe = popen((as + programs_.string() + "/" + command + " 2>&1 < /dev/null").c_str(), "r");
    if (pipe == nullptr) return {-1, "cannot be started"};
    Outcome outcome{0, ""};
    std::array<char, 4096> buffer{};
    while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.out.append(buffer.data(), count);
    outcome.code = pclose(pipe);
    return outcome;
  }

  std::filesystem::path programs_;
  std::string folder_, missing_, broken_;
  std::error_code error_;
  int databases_ = 0;
  pid_t owner_ = 0;
};

}  // namespace forerun::store
