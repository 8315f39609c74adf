// The same cases on a SQLite file and on a real PostgreSQL server, which the tests start.
#include "store/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/test_rounds.h"
#include "store/postgres_database.h"
#include "store/postgres_for_tests.h"
#include "store/random_hex.h"
#include "store/schema.h"

namespace forerun::store {
namespace {

class StoreTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "postgresql") {
      const std::string& missing = PostgresForTests::instance().missing();
      if (!missing.empty()) GTEST_SKIP() << missing;
      ASSERT_EQ(PostgresForTests::instance().broken(), "");
    } else {
      folder_ = testing::TempDir() + "/store_" + random_hex(6);
      std::filesystem::create_directories(folder_);
    }
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] bool in_file() const { return !folder_.empty(); }
  // The name of a place where no store is yet.
  std::string new_place() {
    return in_file() ? folder_ + "/" + random_hex(4) + ".db" : PostgresForTests::instance().new_database();
  }
  static std::unique_ptr<Store> opened(const std::string& name, bool create = true) {
    auto store = Store::open(name, {.create = create});
    EXPECT_TRUE(store.ok()) << (store ? "" : store.error().message());
    return store ? std::move(*store) : nullptr;
  }

  std::string folder_;
};

NewResult sample(const std::string& model, const std::string& gpu, double ms) {
  return {.kind = "predict",
          .question = R"({"model":")" + model + "\"}",
          .answer = R"({"iter_ms":1.5,"text":"ü <script> 'quotes' ? $1"})",
          .question_hash = "abc",
          .made_by = "0.1.0",
          .figures = {
              .model = model, .gpu = gpu, .batch = 64, .iter_ms = ms, .peak_reserved = int64_t{1} << 40, .fits = true}};
}

TEST_P(StoreTest, WhatIsKeptComesBack) {
  const std::string place = new_place();
  std::string id;
  {
    const auto store = opened(place);
    EXPECT_TRUE(store->is_new());
    id = *store->keep(sample("resnet50", "h200", 0.1 + 0.2));
  }
  const auto store = opened(place, false);
  EXPECT_FALSE(store->is_new());
  const auto found = store->result(id);
  ASSERT_TRUE(found.ok() && found->has_value());
  const NewResult given = sample("resnet50", "h200", 0.1 + 0.2);
  EXPECT_EQ((*found)->answer, given.answer);
  EXPECT_EQ((*found)->question, given.question);
  EXPECT_EQ((*found)->row.figures.iter_ms, given.figures.iter_ms) << "to the last bit";
  EXPECT_EQ((*found)->row.figures.peak_reserved, given.figures.peak_reserved);
  EXPECT_EQ((*found)->row.figures.fits, true);
  EXPECT_FALSE((*found)->row.figures.iter_low_ms.has_value());
  EXPECT_EQ(*store->result_beginning(id.substr(0, 6)), id);
  EXPECT_FALSE(store->result_beginning("zzzz").ok());
  EXPECT_TRUE(*store->remove_result(id));
  EXPECT_FALSE(*store->remove_result(id));
  EXPECT_FALSE(store->result(id)->has_value());
}

TEST_P(StoreTest, PagesHaveEveryResultOnce) {
  const auto store = opened(new_place());
  std::set<std::string> kept, seen;
  for (int i = 0; i < 57; ++i) kept.insert(*store->keep(sample(i % 3 == 0 ? "a" : "b", "h200", i)));
  ResultFilter filter{.limit = 10};
  int pages = 0;
  int64_t last = INT64_MAX;
  for (;; ++pages) {
    const auto page = store->list(filter);
    ASSERT_TRUE(page.ok()) << page.error().message();
    for (const ResultRow& row : page->rows) {
      EXPECT_TRUE(seen.insert(row.id).second);
      EXPECT_LE(row.created, last);
      last = row.created;
    }
    if (page->next.empty()) break;
    filter.after = page->next;
    ASSERT_TRUE(store->keep(sample("c", "t4", 1)).ok()) << "what comes meanwhile moves no page";
  }
  EXPECT_EQ(pages, 5);
  EXPECT_EQ(seen, kept);
  EXPECT_EQ(store->list({.model = "a", .limit = 100})->rows.size(), 19U);
  EXPECT_EQ(store->list({.gpu = "t4", .limit = 100})->rows.size(), 5U);
  EXPECT_TRUE(store->list({.kind = "fit"})->rows.empty());
  EXPECT_FALSE(store->list({.after = "1; DROP TABLE result"}).ok());
  EXPECT_FALSE(store->list({.limit = 0}).ok());
  EXPECT_EQ(store->list({.model = "a' OR '1'='1"})->rows.size(), 0U);
}

TEST_P(StoreTest, TagsAndMeasurementsGoWithTheirResult) {
  const auto store = opened(new_place());
  const std::string one = *store->keep(sample("a", "h200", 1)), two = *store->keep(sample("a", "h200", 2));
  EXPECT_TRUE(*store->tag(one, "git", "abc"));
  EXPECT_TRUE(*store->tag(one, "git", "def")) << "takes the place of the earlier";
  EXPECT_TRUE(*store->tag(two, "git", "abc"));
  EXPECT_FALSE(*store->tag(std::string(32, '0'), "git", "abc"));
  EXPECT_EQ(store->list({.tag = "git"})->rows.size(), 2U);
  ASSERT_EQ(store->list({.tag = "git=def"})->rows.size(), 1U);
  EXPECT_EQ(store->list({.tag = "git=def"})->rows[0].tags.at("git"), "def");
  EXPECT_TRUE(*store->measure({.result = one, .iter_ms = 1.25, .machine = "lab"}));
  EXPECT_FALSE(*store->measure({.result = std::string(32, '0'), .iter_ms = 1.25}));
  EXPECT_EQ(store->measurements(one)->at(0).iter_ms, 1.25);
  EXPECT_TRUE(*store->untag(two, "git"));
  EXPECT_FALSE(*store->untag(two, "git"));
  EXPECT_TRUE(*store->remove_result(one));
  EXPECT_EQ(store->counts()->tags, 0);
  EXPECT_EQ(store->counts()->measurements, 0);
  EXPECT_EQ(store->counts()->results, 1);
}

TEST_P(StoreTest, UploadsJobsAndPrices) {
  const auto store = opened(new_place());
  ASSERT_TRUE(store->add_upload({.id = "aa", .kind = "a trace", .name = "t.json", .bytes = 5, .created = 1}).ok());
  ASSERT_TRUE(store->add_upload({.id = "aa", .kind = "a trace", .name = "u.json", .bytes = 5, .created = 2}).ok());
  EXPECT_EQ(store->uploads()->size(), 1U);
  EXPECT_EQ((*store->upload("aa"))->name, "u.json");
  EXPECT_TRUE(*store->remove_upload("aa"));
  JobRow job{.id = "j", .question = "sweep", .body = "{}", .state = "waiting", .server = "h:1", .created = 3};
  ASSERT_TRUE(store->put_job(job).ok());
  EXPECT_EQ(store->unfinished_jobs()->size(), 1U);
  job.state = "done";
  job.ended = 4;
  job.result = "r";
  ASSERT_TRUE(store->put_job(job).ok());
  EXPECT_TRUE(store->unfinished_jobs()->empty());
  EXPECT_EQ((*store->job("j"))->ended, 4);
  EXPECT_FALSE((*store->job("j"))->started.has_value());
  EXPECT_EQ(store->jobs()->at(0).result, "r");
  ASSERT_TRUE(store->set_price({.gpu = "h200", .currency = "USD", .per_hour = 2.5}).ok());
  ASSERT_TRUE(store->set_price({.gpu = "h200", .currency = "USD", .per_hour = 3.5}).ok());
  EXPECT_EQ(store->prices()->at(0).per_hour, 3.5);
  EXPECT_TRUE(*store->remove_price("h200"));
}

TEST_P(StoreTest, ACopyHasAll) {
  const auto from = opened(new_place());
  const std::string id = *from->keep(sample("a", "h200", 1));
  for (int i = 0; i < 450; ++i) ASSERT_TRUE(from->keep(sample("b", "t4", i)).ok());
  ASSERT_TRUE(*from->tag(id, "git", "abc"));
  ASSERT_TRUE(*from->measure({.result = id, .iter_ms = 3.0}));
  ASSERT_TRUE(from->set_price({.gpu = "t4", .per_hour = 1}).ok());
  for (const char* kind : {"file", "postgresql"}) {
    if (std::string(kind) == "postgresql" && !PostgresForTests::instance().missing().empty()) continue;
    const std::string file = testing::TempDir() + "/copy_" + random_hex(6) + ".db";
    const auto to = opened(std::string(kind) == "file" ? file : PostgresForTests::instance().new_database());
    for (int again = 0; again < 2; ++again) ASSERT_TRUE(from->copy_to(*to).ok());
    EXPECT_EQ(to->counts()->results, 451);
    EXPECT_EQ(to->counts()->measurements, 1);
    EXPECT_EQ((*to->result(id))->row.tags.at("git"), "abc");
    EXPECT_EQ((*to->result(id))->row.created, (*from->result(id))->row.created);
    std::filesystem::remove(file);
  }
}

TEST_P(StoreTest, WhatIsNotOursOrNewerIsRefusedAndLeftAlone) {
  const std::string place = new_place();
  const auto sql = [&](const std::string& text) {
    if (!in_file()) return PostgresForTests::instance().execute(place, text);
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(place.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(connection);
  };
  EXPECT_FALSE(Store::open(place, {.create = false}).ok()) << "nothing is made that was not asked for";
  sql("CREATE TABLE other (x INTEGER)");
  const auto refused = Store::open(place, {.create = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("no store of Forerun"), std::string::npos) << refused.error().message();
  sql("DROP TABLE other");
  { ASSERT_NE(opened(place), nullptr); }
  sql("UPDATE forerun_store SET schema_version = 99");
  const auto newer = Store::open(place, {.create = true});
  ASSERT_FALSE(newer.ok());
  EXPECT_NE(newer.error().message().find("later Forerun"), std::string::npos) << newer.error().message();
}

// A process that keeps results as fast as it can, telling of each once it is kept, until it is killed.
pid_t start_writer(const std::string& place, int told) {
  const pid_t child = fork();
  if (child != 0) return child;
  const auto store = Store::open(place, {.create = true});
  if (!store) _exit(1);
  for (int i = 0;; ++i) {
    NewResult result = sample("m", "h200", i);
    result.answer = std::string(static_cast<size_t>(i % 50) * 400, 'x') + "end";
    result.question = std::to_string(result.answer.size());
    const auto id = (*store)->keep(result);
    if (!id || write(told, id->data(), id->size()) != 32) _exit(1);
  }
}

TEST_P(StoreTest, KilledWhileWritingItLosesNothing) {
  const std::string place = new_place();
  { ASSERT_NE(opened(place), nullptr); }
  const char* asked = std::getenv("FORERUN_KILLS");  // 200 takes a minute or two
  const int rounds = asked == nullptr ? static_cast<int>(test_rounds(20)) : std::atoi(asked);
  std::mt19937 random(7);
  std::set<std::string> told;
  for (int round = 0; round < rounds; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t writer = start_writer(place, pipe_ends[1]);
    close(pipe_ends[1]);
    std::string id(32, '\0');
    const auto next_told = [&] {
      const bool more = read(pipe_ends[0], id.data(), id.size()) == 32;
      if (more) told.insert(id);
      return more;
    };
    for (size_t kept = 2 + random() % 20; kept > 0 && next_told(); --kept) continue;
    usleep(static_cast<useconds_t>(random() % 10'000));  // somewhere in what it does then
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    while (next_told()) continue;
    close(pipe_ends[0]);
  }
  const auto store = opened(place, false);
  EXPECT_GT(told.size(), static_cast<size_t>(rounds));
  std::set<std::string> found;
  for (ResultFilter filter{.limit = 500};;) {
    const auto page = store->list(filter);
    ASSERT_TRUE(page.ok()) << page.error().message();
    for (const ResultRow& row : page->rows) {
      const auto kept = store->result(row.id);
      ASSERT_TRUE(kept.ok() && kept->has_value()) << "half a result";
      EXPECT_EQ(std::to_string((*kept)->answer.size()), (*kept)->question);
      EXPECT_TRUE((*kept)->answer.ends_with("end"));
      found.insert(row.id);
    }
    if (page->next.empty()) break;
    filter.after = page->next;
  }
  for (const std::string& id : told) EXPECT_TRUE(found.contains(id)) << "a finished result is lost";
  EXPECT_LE(found.size(), told.size() + static_cast<size_t>(rounds)) << "at most one a kill was kept and not yet told";
}

TEST_P(StoreTest, TwoWritersWaitForEachOther) {
  const std::string place = new_place();
  { ASSERT_NE(opened(place), nullptr); }
  std::vector<pid_t> writers;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      writers.push_back(child);
      continue;
    }
    const auto store = Store::open(place, {.create = false});
    for (int k = 0; store && k < 40; ++k) {
      if (!(*store)->keep(sample("m", "h200", k))) _exit(1);
    }
    _exit(store ? 0 : 1);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(opened(place, false)->counts()->results, 120);
}

INSTANTIATE_TEST_SUITE_P(Both, StoreTest, testing::Values("sqlite", "postgresql"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(SqliteStore, IsItsOwnersAlone) {
  const std::string file = testing::TempDir() + "/own_" + random_hex(6) + ".db";
  {
    const auto store = Store::open(file, {.create = true});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->keep({.kind = "predict"}).ok());
    for (const char* part : {"", "-wal", "-shm"}) {
      struct stat there {};
      ASSERT_EQ(stat((file + part).c_str(), &there), 0) << part;
      EXPECT_EQ(there.st_mode & 0777, 0600) << part;
    }
  }
  std::filesystem::remove(file);
}

TEST(SqliteStore, AFileOfAnotherKindIsRefusedAndLeftAsItIs) {
  const std::string file = testing::TempDir() + "/text_" + random_hex(6);
  const std::string text(5000, 'a');
  std::ofstream(file) << text;
  const auto refused = Store::open(file, {.create = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("no SQLite file"), std::string::npos) << refused.error().message();
  std::ifstream now(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(now), {}), text);
  std::filesystem::remove(file);
  EXPECT_FALSE(Store::open(testing::TempDir(), {.create = true}).ok());
  EXPECT_FALSE(Store::open("/nothere/store.db", {.create = true}).ok());
}

TEST(PostgresStore, PasswordsAreNotShown) {
  EXPECT_EQ(without_password("postgresql://me:secret@host:5432/base"), "postgresql://me:***@host:5432/base");
  EXPECT_EQ(without_password("postgresql://me@host/base"), "postgresql://me@host/base");
  EXPECT_EQ(without_password("postgresql://me:se:c@ret@host/base"), "postgresql://me:***@host/base");
  EXPECT_EQ(without_password("postgresql:///base?user=me&password=secret&host=/tmp"),
            "postgresql:///base?user=me&password=***&host=/tmp");
  const auto refused = Store::open("postgresql://me:secret@127.0.0.1:1/base", {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message().find("secret"), std::string::npos) << refused.error().message();
  const auto broken = Store::open("postgresql://me:secret@[::1/base", {});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message().find("secret"), std::string::npos) << broken.error().message();
}

}  // namespace
}  // namespace forerun::store
