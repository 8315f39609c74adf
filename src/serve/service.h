// Service: requests -> replies. What the routes do, without a word about sockets; the list of them is in routes.h.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/access.h"
#include "serve/answer_cache.h"
#include "serve/aside.h"
#include "serve/exchange.h"
#include "serve/jobs.h"
#include "serve/uploads.h"
#include "serve/words.h"
#include "serve/workers.h"
#include "store/store.h"

namespace forerun::serve {

struct ServiceParts {
  store::Store& store;
  Workers& workers;
  Jobs& jobs;
  Uploads& uploads;
  AccessRules access;
  std::string made_by;           // version of Forerun and of its models
  bool bounded_workers = false;  // the kernel bounds what they open
};

// What is counted, for /metrics.
struct Traffic {
  std::atomic<int64_t> by_status[6] = {};  // 1xx ... 5xx
  std::atomic<int64_t> refused = 0;        // of access
  std::atomic<int64_t> questions = 0;
  std::atomic<int64_t> known = 0;  // of these: answered from before
  std::atomic<int64_t> question_microseconds = 0;
};

class Service {
 public:
  explicit Service(ServiceParts parts);

  // Told before a body is read: nothing where the request may pass.
  std::optional<Reply> refused(const Request& request);
  // The reply comes through `done`, at once or from another thread later.
  void handle(const Request& request, const Done& done);
  // An upload that came in whole.
  void finish_upload(const Request& request, IncomingUpload& upload, const Done& done);
  static bool is_upload(const Request& request);
  Result<std::unique_ptr<IncomingUpload>> begin_upload() { return parts_.uploads.begin(); }
  Traffic& traffic() { return traffic_; }
  // Gives the replies that the store owes.
  void stop() { aside_.stop(); }

 private:
  friend struct Routes;
  using Captured = std::vector<std::string>;

  // routes.cpp
  void page(const Request& request, const Captured& captured, const Done& done);
  void perfetto(const Request& request, const Captured& captured, const Done& done);
  void health(const Request& request, const Captured& captured, const Done& done);
  void openapi(const Request& request, const Captured& captured, const Done& done);
  void metrics(const Request& request, const Captured& captured, const Done& done);
  void accuracy(const Request& request, const Captured& captured, const Done& done);
  void policies(const Request& request, const Captured& captured, const Done& done);
  // question_routes.cpp
  void catalogue(const Request& request, const Captured& captured, const Done& done);
  void question(const Request& request, const Captured& captured, const Done& done);
  void start_job(const Request& request, const Captured& captured, const Done& done);
  void list_jobs(const Request& request, const Captured& captured, const Done& done);
  void show_job(const Request& request, const Captured& captured, const Done& done);
  void cancel_job(const Request& request, const Captured& captured, const Done& done);
  void job_events(const Request& request, const Captured& captured, const Done& done);
  void timeline(const Request& request, const Captured& captured, const Done& done);
  // store_routes.cpp
  void list_uploads(const Request& request, const Captured& captured, const Done& done);
  void show_upload(const Request& request, const Captured& captured, const Done& done);
  void upload_content(const Request& request, const Captured& captured, const Done& done);
  void delete_upload(const Request& request, const Captured& captured, const Done& done);
  void list_results(const Request& request, const Captured& captured, const Done& done);
  void show_result(const Request& request, const Captured& captured, const Done& done);
  void delete_result(const Request& request, const Captured& captured, const Done& done);
  void put_tag(const Request& request, const Captured& captured, const Done& done);
  void delete_tag(const Request& request, const Captured& captured, const Done& done);
  void add_measurement(const Request& request, const Captured& captured, const Done& done);
  void list_measurements(const Request& request, const Captured& captured, const Done& done);
  void list_prices(const Request& request, const Captured& captured, const Done& done);
  void put_price(const Request& request, const Captured& captured, const Done& done);
  void delete_price(const Request& request, const Captured& captured, const Done& done);

  // What an answer depends on, hashed: question, words, program, data and the machine's calibration.
  [[nodiscard]] std::string hash_of(const std::string& question, const std::string& words) const;
  Result<Admitted> admitted(const AllowedQuestion& question, std::string_view body);
  // An id of an upload as its file's name, wherever it stands in a text.
  std::string with_names(std::string text, const std::vector<std::string>& uploads);
  Error with_names(const Error& error, const std::vector<std::string>& uploads);

  ServiceParts parts_;
  Traffic traffic_;
  AnswerCache answers_{size_t{32} << 20};
  std::string page_, page_policy_;
  std::mutex catalogues_busy_;
  std::map<std::string, std::string> catalogues_;  // answers that never change
  Aside aside_;                                    // what asks the store
};

// Answers of several lines as one list.
std::string as_one_json(std::string text, bool always_list);
// What lists show of an answer.
store::ResultFigures figures_of(const std::string& answer, const std::string& question);

}  // namespace forerun::serve
