// Shards, the parts they write, and the parts put together.
#include "base/part_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/part_lines.h"
#include "base/part_set.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

TEST(Shard, EveryCaseBelongsToOne) {
  for (const size_t count : {1, 2, 3, 7, 20}) {
    for (const size_t cases : {0, 1, 6, 7, 8, 100}) {
      size_t all = 0;
      for (size_t index = 0; index < count; ++index) {
        const Shard shard{index, count};
        size_t own = 0;
        for (size_t number = 0; number < cases; ++number) {
          if (!shard.has(number)) continue;
          EXPECT_EQ(shard.number(own), number);
          ++own;
        }
        EXPECT_EQ(shard.cases_of(cases), own);
        all += own;
      }
      EXPECT_EQ(all, cases);
    }
  }
}

TEST(Shard, IsWrittenIOfN) {
  EXPECT_EQ(*parse_shard("0/1"), (Shard{0, 1}));
  EXPECT_EQ(*parse_shard("11/12"), (Shard{11, 12}));
  for (const char* text :
       {"", "1", "/", "1/", "/4", "4/4", "5/4", "-1/4", "0/0", "1/2/3", "a/b", "0/2000000", " 0/4", "0x1/4"}) {
    EXPECT_FALSE(parse_shard(text)) << text;
  }
  EXPECT_NE(parse_shard("4/4").error().remedy.find("0/4 to 3/4"), std::string::npos);
}

ShardedWork some_work(size_t cases = 10) {
  ShardedWork work{"sweep", cases, "1.0, build 1", "data"};
  work.request = {{"MODEL", {"resnet50"}}, {"--over", {"batch=1..5", "gpu=\"t4\",l4"}}};
  work.files = {{"prices.toml", {"00ff"}}};
  work.about = R"({"axes":["batch"],"x":0.1})";
  return work;
}

TEST(ShardedWork, SaysWhatDiffers) {
  const ShardedWork work = some_work();
  EXPECT_FALSE(difference(work, work));
  const auto said = [&](const std::function<void(ShardedWork&)>& change) {
    ShardedWork other = work;
    change(other);
    return difference(other, work).value_or("nothing");
  };
  EXPECT_EQ(said([](ShardedWork& w) { w.request[0].second = {"vgg16"}; }),
            "MODEL is 'vgg16' there and 'resnet50' here");
  EXPECT_EQ(said([](ShardedWork& w) { w.request.pop_back(); }),
            "--over is not given there and 'batch=1..5' 'gpu=\"t4\",l4' here");
  EXPECT_NE(said([](ShardedWork& w) { w.files[0].second = {"0"}; }).find("prices.toml"), std::string::npos);
  EXPECT_NE(said([](ShardedWork& w) { w.program = "2"; }).find("program"), std::string::npos);
  EXPECT_NE(said([](ShardedWork& w) { w.data = "2"; }).find("data folder"), std::string::npos);
  EXPECT_NE(said([](ShardedWork& w) { w.cases = 2; }).find("cases"), std::string::npos);
  EXPECT_NE(said([](ShardedWork& w) { w.verb = "schedule"; }).find("verb"), std::string::npos);
  EXPECT_NE(said([](ShardedWork& w) { w.about = "{}"; }), "nothing");
}

TEST(PartLines, ReadWhatTheyWrite) {
  const auto head = parse_part_head(part_head_line({some_work(), {2, 5}}), "x");
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_FALSE(difference(head->work, some_work()));
  EXPECT_EQ(head->shard, (Shard{2, 5}));
  const std::string line = part_case_line(17, R"({"a":[1,2]})");
  const auto one = parse_part_case(line);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->number, 17U);
  EXPECT_EQ(one->row, R"({"a":[1,2]})");
  for (size_t length = 0; length < line.size(); ++length)
    EXPECT_FALSE(parse_part_case(line.substr(0, length))) << length;
  for (size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] ^= 1;
    EXPECT_FALSE(parse_part_case(changed)) << changed;
  }
  for (const char* text :
       {"", "{}", "[]", "1", "null", R"({"schema":"forerun.part/1"})", R"({"schema":"forerun.sweep/1"})"}) {
    EXPECT_FALSE(parse_part_head(text, "x")) << text;
  }
  EXPECT_NE(parse_part_head(R"({"schema":"forerun.part/2"})", "x").error().what.find("forerun.part/2"),
            std::string::npos);
}

std::string row_of(size_t number) { return fmt::format(R"({{"answer":{}}})", number * number); }

class Parts : public testing::Test {
 protected:
  Parts() { fs::create_directories(folder_); }
  ~Parts() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(size_t index) const { return (folder_ / fmt::format("part-{}", index)).string(); }
  [[nodiscard]] static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // Does what is missing; how many cases were done now.
  size_t finish(const Shard& shard, const ShardedWork& work = some_work(), size_t threads = 2) {
    auto part = PartFile::open(path(shard.index), work, shard);
    EXPECT_TRUE(part) << part.error().message();
    if (!part) return 0;
    std::atomic<size_t> done = 0;
    const WorkControl control;
    Work progress(control);
    const Status status = do_missing(*part, threads, progress, [&](size_t number) -> Result<std::string> {
      ++done;
      return row_of(number);
    });
    EXPECT_TRUE(status.ok());
    EXPECT_TRUE(part->missing().empty());
    return done;
  }
  [[nodiscard]] std::vector<std::string> paths(size_t count) const {
    std::vector<std::string> all;
    for (size_t index = 0; index < count; ++index) all.push_back(path(index));
    return all;
  }
  void expect_merged(size_t count, const ShardedWork& work = some_work()) const {
    const auto set = PartSet::open(paths(count), "sweep");
    ASSERT_TRUE(set) << set.error().message();
    ASSERT_EQ(set->size(), work.cases);
    for (size_t number = 0; number < work.cases; ++number) EXPECT_EQ(*set->row(number), row_of(number));
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("parts_" + std::to_string(getpid()));
};

TEST_F(Parts, TogetherAreAllCasesInOrder) {
  for (size_t index = 0; index < 3; ++index) EXPECT_EQ(finish({index, 3}), index == 0 ? 4U : 3U);
  expect_merged(3);
  EXPECT_EQ(finish({1, 3}), 0U) << "it was done";
}

TEST_F(Parts, MoreShardsThanCases) {
  for (size_t index = 0; index < 5; ++index) finish({index, 5}, some_work(2));
  expect_merged(5, some_work(2));
}

TEST_F(Parts, GoOnFromWhereverTheyWereCut) {
  finish({0, 1});
  const std::string whole = bytes_of(path(0));
  for (size_t length = 0; length <= whole.size(); ++length) {
    write(path(0), whole.substr(0, length));
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length), '\n');
    EXPECT_EQ(finish({0, 1}), 10U - static_cast<size_t>(std::max<std::ptrdiff_t>(lines - 1, 0))) << length;
    expect_merged(1);
    const std::string again = bytes_of(path(0));
    EXPECT_EQ(std::count(again.begin(), again.end(), '\n'), 11) << "no case twice, nothing torn is left";
  }
}

TEST_F(Parts, LinesWithHolesAreDoneAgain) {
  finish({0, 1});
  std::string bytes = bytes_of(path(0));
  const size_t fourth = bytes.find("\"case\":3");
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(fourth) + 20,
            bytes.begin() + static_cast<std::ptrdiff_t>(fourth) + 30, '\0');
  write(path(0), bytes);
  const auto lacking = PartSet::open({path(0)}, "sweep");
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().what, "shard 0/1 lacks 1 of its 10 cases: 3");
  EXPECT_EQ(finish({0, 1}), 1U);
  expect_merged(1);
  EXPECT_EQ(PartSet::open({path(0)}, "sweep")->not_whole(), 1U);
}

TEST_F(Parts, OfSomethingElseAreRefusedAndStay) {
  const auto refused = [&](const std::string& bytes, const ShardedWork& work, const Shard& shard) {
    write(path(0), bytes);
    const auto part = PartFile::open(path(0), work, shard);
    EXPECT_FALSE(part.ok());
    EXPECT_EQ(bytes_of(path(0)), bytes);
    return part.ok() ? "" : part.error().what;
  };
  EXPECT_NE(refused("my notes", some_work(), {}).find("something else"), std::string::npos);
  EXPECT_NE(refused("my notes\nmore of them\n", some_work(), {}).find("something else"), std::string::npos);
  EXPECT_NE(refused(std::string(5000, 'x'), some_work(), {}).find("something else"), std::string::npos);
  fs::remove(path(0));
  finish({0, 2});
  const std::string bytes = bytes_of(path(0));
  EXPECT_NE(refused(bytes, some_work(), {1, 2}).find("is shard 0/2, not 1/2"), std::string::npos);
  EXPECT_NE(refused(bytes, some_work(11), {0, 2}).find("cases is 10 there and 11 here"), std::string::npos);
  ShardedWork other = some_work();
  other.program = "1.0, build 2";
  EXPECT_NE(refused(bytes, other, {0, 2}).find("1.0, build 1 there and 1.0, build 2 here"), std::string::npos);
  EXPECT_NE(refused(bytes + part_case_line(1, "{}") + "\n", some_work(), {0, 2}).find("case 1"), std::string::npos);
  EXPECT_FALSE(PartFile::open("/no/such/folder/x", some_work(), {}).ok());
  EXPECT_FALSE(PartFile::open("/dev/null", some_work(), {}).ok());
  EXPECT_FALSE(PartFile::open(folder_.string(), some_work(), {}).ok());
}

TEST_F(Parts, OneProcessAtATime) {
  const auto first = PartFile::open(path(0), some_work(), {});
  ASSERT_TRUE(first);
  const auto second = PartFile::open(path(0), some_work(), {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().what.find("another process"), std::string::npos);
}

TEST_F(Parts, FirstErrorEndsTheWorkAndWhatIsDoneStays) {
  {
    auto part = PartFile::open(path(0), some_work(), {});
    ASSERT_TRUE(part);
    const WorkControl control;
    Work progress(control);
    const Status status = do_missing(*part, 1, progress, [&](size_t number) -> Result<std::string> {
      if (number == 4) return Error{"no", "", ""};
      return row_of(number);
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().what, "no");
  }
  EXPECT_EQ(finish({0, 1}), 6U);
  expect_merged(1);
}

TEST_F(Parts, AFullDiskIsAnErrorAndTakesTheLineBack) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{600, 600};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto part = PartFile::open(path(0), some_work(), {});
    bool failed = false;
    for (size_t number = 0; part.ok() && number < 10 && !failed; ++number)
      failed = !part->add(number, row_of(number)).ok();
    _exit(part.ok() && failed ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(bytes_of(path(0)).ends_with("}\n"));
  finish({0, 1});
  expect_merged(1);
}

// A process that is killed again and again, at moments drawn at random, gets done all the same, and nothing twice.
TEST_F(Parts, KilledAtAnyMoment) {
  constexpr size_t kCases = 400;
  std::mt19937 random(7);
  int kills = 0;
  for (bool done = false; !done;) {
    const pid_t child = fork();
    if (child == 0) {
      auto part = PartFile::open(path(0), some_work(kCases), {});
      const WorkControl control;
      Work progress(control);
      const bool ok = part.ok() && do_missing(*part, 1, progress, [](size_t number) -> Result<std::string> {
                                     return row_of(number);
                                   }).ok();
      _exit(ok ? 0 : 1);
    }
    if (kills < 40) {
      usleep(random() % 4000);
      kill(child, SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    done = WIFEXITED(status);
    ++kills;
  }
  expect_merged(1, some_work(kCases));
  const std::string bytes = bytes_of(path(0));
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), kCases + 1);
}

TEST_F(Parts, WhatIsMissingOrGivenTwiceIsNamed) {
  for (size_t index = 0; index < 3; ++index) finish({index, 3}, some_work(), 1);  // one thread: in order
  const auto said = [&](const std::vector<std::string>& files, const char* verb = "sweep") {
    const auto set = PartSet::open(files, verb);
    EXPECT_FALSE(set.ok());
    return set.ok() ? "" : set.error().message();
  };
  EXPECT_NE(said({path(0), path(2)}).find("1 of 3 shards are missing: 1/3"), std::string::npos);
  EXPECT_NE(said({path(0), path(1), path(2), path(1)}).find("shard 1/3 is given twice"), std::string::npos);
  EXPECT_NE(said({}).find("no part"), std::string::npos);
  EXPECT_NE(said({path(0), path(9)}).find("part-9"), std::string::npos);
  EXPECT_NE(said({path(0)}, "schedule").find("forerun sweep merge"), std::string::npos);
  const std::string bytes = bytes_of(path(1));
  write(path(1), bytes.substr(0, bytes.find("\n{\"case\":4") + 1));
  EXPECT_NE(said(paths(3)).find("shard 1/3 lacks 2 of its 3 cases: 4, 7"), std::string::npos) << said(paths(3));
  write(path(1), bytes + part_case_line(1, "{}") + "\n");
  EXPECT_NE(said(paths(3)).find("has case 1 twice with different answers"), std::string::npos);
  write(path(1), bytes + part_case_line(1, row_of(1)) + "\n");
  expect_merged(3);
  write(path(1), "");
  EXPECT_NE(said(paths(3)).find("is empty"), std::string::npos);
  fs::remove(path(1));
  finish({1, 3}, some_work(11));
  EXPECT_NE(said(paths(3)).find("is of another question than"), std::string::npos);
  fs::remove(path(1));
  finish({1, 2});
  EXPECT_NE(said(paths(3)).find("it is shard 1/2, and that is 0/3"), std::string::npos) << said(paths(3));
}

TEST_F(Parts, MoreOfThemThanFilesMayBeOpen) {
  constexpr size_t kShards = 600;
  for (size_t index = 0; index < kShards; ++index) finish({index, kShards}, some_work(700), 1);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit few{400, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  expect_merged(kShards, some_work(700));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A head may claim what it likes: nothing is allotted for it.
TEST_F(Parts, ClaimsTakeNoMemory) {
  write(path(0), part_head_line({some_work(SIZE_MAX), {0, 1}}) + "\n");
  const auto set = PartSet::open({path(0)}, "sweep");
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.error().what.find("0, 1, 2, 3, 4, ..."), std::string::npos) << set.error().what;
}

}  // namespace
}  // namespace forerun
