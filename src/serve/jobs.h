// Jobs: questions that are asked in the background. A job is in the store from its first moment to its end; while it lives its
// progress is here, and goes to whoever listens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/event_stream.h"
#include "serve/workers.h"
#include "store/store.h"

namespace forerun::serve {

struct JobStart {
  std::string question;                                             // its name
  std::string body;                                                 // as the user gave it
  std::string words;                                                // as the worker is asked it
  std::function<store::NewResult(const std::string& text)> result;  // what is kept of the answer
  std::function<Error(const Error&)> shown;                         // an error as the user may see it
};

class Jobs {
 public:
  Jobs(store::Store& store, Workers& workers);
  ~Jobs() { close(); }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // The job as JSON; nothing where too many wait.
  Result<std::optional<std::string>> start(JobStart start);
  Result<std::optional<std::string>> json(const std::string& id);
  Result<std::string> list_json();
  // The job, asked to end; nothing where there is none.
  Result<std::optional<std::string>> cancel(const std::string& id);
  // News of the job; nothing where there is none.
  Result<std::shared_ptr<EventStream>> listen(const std::string& id);
  // Keeps connections that listen from going unnoticed.
  void beat();
  // No more news: the server ends.
  void close();
  size_t live();

 private:
  struct Live {
    store::JobRow row;
    WorkerProgress progress;
    uint64_t task = 0;
    std::vector<std::shared_ptr<EventStream>> listeners;
  };
  void on_started(const std::string& id);
  void on_progress(const std::string& id, const WorkerProgress& progress);
  void on_done(const std::string& id, const JobStart& start, Answered answered);
  void tell(Live& job, const char* event, bool last);

  store::Store& store_;
  Workers& workers_;
  std::string server_;  // "host:pid", of jobs that are ours
  std::mutex busy_;
  std::map<std::string, Live> live_;
};

}  // namespace forerun::serve
