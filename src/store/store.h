// Store: what is kept of answers (results, their tags, what was measured of them), uploads, jobs and the user's prices.
//
//   auto store = Store::open("forerun.db", {.create = true});       // or "postgresql://user@host/base"
//   const auto id = (*store)->keep({.kind = "predict", .question = "{...}", .answer = "{...}"});
//   for (const ResultRow& row : (*store)->list({.model = "resnet50"})->rows) ...
//
// A result is there whole or not at all, and stays once keep() returned. Lists come in pages, by key and not by number, so
// that the last page costs what the first does. Calls may come from several threads; they wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_control.h"
#include "store/database.h"

namespace forerun::store {

// What a list shows of a result; what its answer does not tell is not set.
struct ResultFigures {
  std::optional<std::string> model, gpu, precision;
  std::optional<int64_t> batch;
  std::optional<double> iter_ms, iter_low_ms, iter_high_ms;
  std::optional<int64_t> peak_reserved;  // bytes
  std::optional<bool> fits;
};

using Tags = std::map<std::string, std::string>;

struct ResultRow {
  std::string id;             // 32 hexadecimal digits
  std::string kind;           // the question: "predict"
  int64_t created = 0;        // microseconds since 1970, UTC
  std::string question_hash;  // equal for equal questions
  std::string made_by;        // version of Forerun and of its models
  ResultFigures figures;
  Tags tags;
};

struct NewResult {
  std::string kind;
  std::string question;  // JSON
  std::string answer;    // JSON
  std::string question_hash = {};
  std::string made_by = {};
  ResultFigures figures = {};
};

struct KeptResult {
  ResultRow row;
  std::string question, answer;
};

struct ResultFilter {
  std::string kind = {}, model = {}, gpu = {};
  std::string tag = {};    // "name" or "name=value"
  std::string after = {};  // ResultPage::next of the page before
  int64_t limit = 50;
};

struct ResultPage {
  std::vector<ResultRow> rows;  // newest first
  std::string next;             // empty: there are no more
};

struct Measurement {
  std::string id, result;
  int64_t created = 0;
  std::optional<double> iter_ms;
  std::optional<int64_t> peak_reserved;
  std::string machine;
};

struct Upload {
  std::string id;  // SHA-256 of the bytes
  std::string kind, name;
  int64_t bytes = 0, created = 0;
};

struct JobRow {
  std::string id, question, body, state, server;
  int64_t created = 0;
  std::optional<int64_t> started, ended;
  std::string result;  // id; empty: none
  std::string error;   // JSON; empty: none
};

struct Price {
  std::string gpu, currency;
  double per_hour = 0;
  int64_t created = 0;
};

struct Counts {
  int64_t results = 0, tags = 0, measurements = 0, uploads = 0, jobs = 0, prices = 0;
};

class Store {
 public:
  struct Options {
    bool create = false;  // makes it where it is not there, or is an empty database
  };
  // A path, or postgresql://...
  static Result<std::unique_ptr<Store>> open(const std::string& name, Options options);
  explicit Store(std::unique_ptr<Database> database, bool made) : database_(std::move(database)), made_(made) {}

  [[nodiscard]] const std::string& name() const { return database_->name(); }  // without a password
  [[nodiscard]] bool is_new() const { return made_; }

  Result<std::string> keep(const NewResult& result);  // gives its id
  // All of them or none, with the same tags; gives their ids.
  Result<std::vector<std::string>> keep_all(const std::vector<NewResult>& results, const Tags& tags = {});
  Result<ResultPage> list(const ResultFilter& filter);
  Result<std::optional<KeptResult>> result(const std::string& id);
  Result<bool> remove_result(const std::string& id);  // false: there is none
  // The full id that a beginning stands for, as people type it; "last": the newest.
  Result<std::string> result_beginning(const std::string& beginning);

  Result<bool> tag(const std::string& result, const std::string& name, const std::string& content);
  Result<bool> untag(const std::string& result, const std::string& name);

  Result<bool> measure(Measurement measurement);  // of a result that is there; else false
  Result<std::vector<Measurement>> measurements(const std::string& result, int64_t limit = 1000);  // "": of all

  Status add_upload(const Upload& upload);
  Result<std::vector<Upload>> uploads(int64_t limit = 1000);
  Result<std::optional<Upload>> upload(const std::string& id);
  Result<bool> remove_upload(const std::string& id);

  Status put_job(const JobRow& job);  // new, or in its place
  Result<std::vector<JobRow>> jobs(int64_t limit = 100);
  Result<std::optional<JobRow>> job(const std::string& id);
  // Of those that are not over: by id and server.
  Result<std::vector<JobRow>> unfinished_jobs();

  Status set_price(const Price& price);
  Result<std::vector<Price>> prices();
  Result<bool> remove_price(const std::string& gpu);

  Result<Counts> counts();

  // Adds all but uploads, whose files are elsewhere, to another store; what it has already of an id stays.
  Status copy_to(Store& other, const WorkControl& control = {});

 private:
  Result<std::vector<ResultRow>> rows_of(const std::string& where, const std::vector<Value>& values);
  Status read_tags(std::vector<ResultRow>& rows);
  Status put_result(const KeptResult& result);
  Result<bool> there_is(const std::string& result);

  std::mutex busy_;
  std::unique_ptr<Database> database_;
  bool made_;
};

int64_t now_microseconds();
std::string iso_time(int64_t microseconds);  // "2026-11-18T04:30:00.123456Z"

}  // namespace forerun::store
