// Questions from Python (src/ask): text in, text out.
//
// A question runs on a thread of its own while the one that asked waits without the GIL and looks, many times a second,
// whether a signal came: Ctrl-C stops the question, and raises KeyboardInterrupt where it was asked. Several threads of
// Python may ask at once.
#include "ask/ask.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>

#include "api/predict.h"
#include "native.h"

namespace py = pybind11;

namespace forerun::python {
namespace {

constexpr std::chrono::milliseconds kLookForSignals{20};

// One question on its way.
class Background {
 public:
  template <class Task>
  void run(const Task& task) {
    const auto work = [&] {
      try {
        answer_ = task(stop_.get_token());
      } catch (...) {
        failed_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      done_ = true;
      ended_.notify_all();
    };
    bool interrupted = false;
    {
      const py::gil_scoped_release release;
      std::optional<std::thread> thread;
      try {
        thread.emplace(work);
      } catch (const std::system_error&) {
        work();  // a machine that gives no thread gets the same answer
      }
      while (!ended()) interrupted = interrupted || stopped_by_signal();
      if (thread) thread->join();
    }
    if (interrupted) throw py::error_already_set();
    if (failed_) std::rethrow_exception(failed_);
  }

  [[nodiscard]] const Result<std::string>& answer() const { return *answer_; }

 private:
  bool ended() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, kLookForSignals, [&] { return done_; });
  }
  // Leaves the exception set in this thread.
  bool stopped_by_signal() {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return false;
    stop_.request_stop();
    return true;
  }

  std::stop_source stop_;
  std::optional<Result<std::string>> answer_;
  std::exception_ptr failed_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;  // guarded by mutex_
};

// A job as a policy written in Python sees it.
struct WaitingJob {
  std::string id, user, group, model;
  int32_t gpus = 1, priority = 0;
  double submit = 0;               // seconds from the first submission
  double predicted = 0;            // seconds on its fastest GPU type
  double attained = 0;             // seconds that it has held GPUs
  std::optional<double> deadline;  // seconds from the first submission
  cluster::JobIndex index = cluster::kNoJob;
};

// A policy that is a function of Python: of the waiting jobs, in order of submission, it gives those that may start, the
// first ones first; whatever fits starts on the type where it is predicted to be fastest. Nothing is preempted.
class OrderedByPython final : public cluster::Policy {
 public:
  explicit OrderedByPython(py::object order) : order_(std::move(order)) {}
  ~OrderedByPython() override {
    const py::gil_scoped_acquire lock;
    order_ = py::object();
  }

  void arrived(const cluster::ClusterView& /*view*/, cluster::JobIndex job) override {
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), job), job);
  }

  void schedule(cluster::Scheduler& scheduler) override {
    if (waiting_.empty()) return;
    const auto order = ordered(scheduler);
    if (!order) return scheduler.give_up(order.error());
    std::vector<bool> named(waiting_.empty() ? 0 : waiting_.back() + 1, false);
    for (const cluster::JobIndex job : *order) {
      const bool waits = std::binary_search(waiting_.begin(), waiting_.end(), job);
      if (!waits || named[job]) {
        return scheduler.give_up({"the policy names a job that does not wait, or one twice", "policies",
                                  "give jobs of the list it is called with, each at most once"});
      }
      named[job] = true;
    }
    for (const cluster::JobIndex job : *order) {
      const auto type = scheduler.fastest_free(job);
      if (!type) continue;
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), job));
      scheduler.start(job, *type);
    }
  }

 private:
  static WaitingJob described(const cluster::ClusterView& view, cluster::JobIndex job) {
    const cluster::Job& stated = view.job(job);
    WaitingJob waiting{.id = view.name_of(job),
                       .user = view.user_of(job),
                       .group = view.group_of(job),
                       .model = view.model_of(job),
                       .gpus = stated.gpus,
                       .priority = stated.priority,
                       .submit = cluster::seconds(stated.arrival),
                       .predicted = cluster::seconds(view.predicted_fastest(job)),
                       .attained = cluster::seconds(view.attained(job)),
                       .index = job};
    if (stated.deadline != cluster::kNever) waiting.deadline = cluster::seconds(stated.deadline);
    return waiting;
  }

  // What the function makes of those that wait now; what it raises is an Error.
  Result<std::vector<cluster::JobIndex>> ordered(const cluster::ClusterView& view) {
    const py::gil_scoped_acquire lock;
    try {
      std::vector<WaitingJob> jobs;
      jobs.reserve(waiting_.size());
      for (const cluster::JobIndex job : waiting_) jobs.push_back(described(view, job));
      std::vector<cluster::JobIndex> order;
      for (const py::handle job : order_(py::cast(std::move(jobs)), cluster::seconds(view.now()))) {
        order.push_back(job.cast<const WaitingJob&>().index);
      }
      return order;
    } catch (py::error_already_set& error) {
      return Error{std::string("the policy raised ") + error.what(), "policies", "mend the function"};
    } catch (const py::cast_error&) {
      return Error{"the policy gave what is no list of jobs", "policies", "return jobs of the list it is called with"};
    }
  }

  py::object order_;
  std::vector<cluster::JobIndex> waiting_;  // by number, which is the order of submission
};

py::str ask_question(const std::string& name, const std::string& question,
                     const std::map<std::string, py::function>& policies) {
  ask::Asking asking{.knowledge = knowledge()};
  for (const auto& [text, order] : policies) {
    // Raw, since a std::function is copied where the GIL is not held; `policies` outlives the question.
    PyObject* function = order.ptr();
    asking.policies[text] = [function] {
      const py::gil_scoped_acquire lock;
      return std::make_unique<OrderedByPython>(py::reinterpret_borrow<py::object>(function));
    };
  }
  Background background;
  background.run([&](std::stop_token stop) {
    asking.control.stop = std::move(stop);
    return ask::answer(name, question, asking);
  });
  if (!background.answer().ok()) raise(background.answer().error());
  return python_text(*background.answer());
}

// What forerun::predict takes for a model of the zoo, for forerun.bench_api to compare itself with; batch 0: its own.
double predict_seconds(const std::string& model, int64_t batch) {
  const auto models = taken(knowledge().with());
  PredictRequest request;
  request.model.model = model;
  request.remedies = false;
  if (batch > 0) request.model.batch = batch;
  const auto start = std::chrono::steady_clock::now();
  taken(predict(request, *models));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void add_asking(py::module_& module) {
  module.def("questions", &ask::questions);
  module.def("predict_seconds", &predict_seconds, py::arg("model"), py::arg("batch") = 0,
             py::call_guard<py::gil_scoped_release>());
  module.def("ask", &ask_question, py::arg("name"), py::arg("question"),
             py::arg("policies") = std::map<std::string, py::function>());
  py::class_<WaitingJob>(module, "Job")
      .def_readonly("id", &WaitingJob::id)
      .def_readonly("user", &WaitingJob::user)
      .def_readonly("group", &WaitingJob::group)
      .def_readonly("model", &WaitingJob::model)
      .def_readonly("gpus", &WaitingJob::gpus)
      .def_readonly("priority", &WaitingJob::priority)
      .def_readonly("submit", &WaitingJob::submit)
      .def_readonly("predicted", &WaitingJob::predicted)
      .def_readonly("attained", &WaitingJob::attained)
      .def_readonly("deadline", &WaitingJob::deadline);
}

}  // namespace forerun::python
