// Iterations and the primitives that change them, as src/whatif has them.
//
// Python's forerun.whatif (python/forerun/whatif.py) is what users import; it documents all of this. Tasks are numbers
// that hold until an edit is committed.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "api/trace.h"
#include "api/whatif.h"
#include "native.h"
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace py = pybind11;

namespace forerun::python {
namespace {

std::shared_ptr<const CostModels> shared_cost_models() { return taken(knowledge().with()); }

// An iteration with what it points to.
struct PythonIteration {
  std::shared_ptr<const CostModels> cost_models;
  std::shared_ptr<const Trace> trace;            // null: of a model
  std::shared_ptr<const whatif::OpTimer> timer;  // null: the GPU is not known
  whatif::EditableIteration edited;

  static PythonIteration from_trace(const std::string& path, bool unprofiled, const std::string& gpu) {
    const auto cost_models = shared_cost_models();
    auto trace = std::make_shared<const Trace>(taken(read_profiler_trace(path, "replay")));
    WhatIfQuestion question;
    question.unprofiled = unprofiled;
    question.gpu = gpu;
    BaseIteration base = taken(base_iteration(*trace, question, *cost_models));
    return {cost_models, std::move(trace), std::move(base.timer), std::move(base.edited)};
  }

  static PythonIteration from_model(const std::string& model, std::optional<int64_t> batch, const std::string& gpu,
                                    const std::map<std::string, std::string>& settings) {
    const auto cost_models = shared_cost_models();
    ModelRequest request;
    request.model = model;
    request.batch = batch;
    request.settings.assign(settings.begin(), settings.end());
    WhatIfQuestion question;
    question.gpu = gpu;
    BaseIteration base = taken(base_iteration(request, question, *cost_models));
    return {cost_models, nullptr, std::move(base.timer), std::move(base.edited)};
  }

  void apply(const std::string& text) {
    const auto application = taken(whatif::parse_application(text));
    require(application.optimization->apply(edited, application.parameters));
  }
  [[nodiscard]] double iteration_ms() const { return milliseconds(taken(edited.iteration_time())); }
};

struct PythonTask {
  uint32_t id = 0;
  std::string kind, name, op, module, phase, lane;
  double duration_us = 0, gap_us = 0;
};

PythonTask described(const TaskGraph& graph, TaskId id) {
  const Task task = graph[id];
  return {id.value,
          std::string(name_of(task.kind)),
          graph.text(task.name),
          graph.text(task.op),
          graph.text(task.module),
          std::string(name_of(task.phase)),
          graph.lane_of(id).name,
          microseconds(task.duration),
          microseconds(task.gap)};
}

// A task number that Python gave.
TaskId checked(const TaskGraph& graph, uint32_t id) {
  if (id >= graph.size()) throw py::index_error("there is no task " + std::to_string(id));
  return TaskId(id);
}

std::vector<TaskId> checked(const TaskGraph& graph, const std::vector<uint32_t>& ids) {
  std::vector<TaskId> tasks;
  tasks.reserve(ids.size());
  for (const uint32_t id : ids) tasks.push_back(checked(graph, id));
  return tasks;
}

struct Wanted {
  std::string kind, name, op, module, phase, lane;
  std::function<bool(const PythonTask&)> predicate;
};

std::vector<uint32_t> selected(const TaskGraph& graph, const Wanted& wanted) {
  const auto contains = [](const std::string& text, const std::string& part) {
    return part.empty() || text.find(part) != std::string::npos;
  };
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const PythonTask task = described(graph, TaskId(i));
    const bool gpu = wanted.kind == "gpu" && on_gpu(graph.kind(TaskId(i)));
    if (!wanted.kind.empty() && task.kind != wanted.kind && !gpu) continue;
    if (!wanted.phase.empty() && task.phase != wanted.phase) continue;
    if (!contains(task.name, wanted.name) || !contains(task.op, wanted.op)) continue;
    if (!contains(task.module, wanted.module) || !contains(task.lane, wanted.lane)) continue;
    if (wanted.predicate && !wanted.predicate(task)) continue;
    found.push_back(i);
  }
  return found;
}

// An edit of an iteration; tasks are the iteration's until it is committed, and those that the edit adds.
class PythonEdit {
 public:
  explicit PythonEdit(PythonIteration& edited)
      : iteration_(edited), edit_(edited.edited.graph()), count_(edit_.original().size()) {}

  void scale(const std::vector<uint32_t>& tasks, double factor) {
    if (!(factor >= 0)) throw py::value_error("a factor is not below zero");
    edit_.scale(original(tasks), factor);
  }
  void scale_gaps(const std::vector<uint32_t>& tasks, double factor) {
    if (!(factor >= 0)) throw py::value_error("a factor is not below zero");
    edit_.scale_gaps(original(tasks), factor);
  }
  void set_duration(uint32_t task, double us) { edit_.set_duration(original(task), time_of(us)); }
  void set_priority(uint32_t task, int32_t priority) { edit_.set_priority(original(task), priority); }
  void remove(const std::vector<uint32_t>& tasks) { edit_.remove(original(tasks)); }
  void remove_kernels(const std::vector<uint32_t>& kernels) { whatif::remove_kernels(edit_, original(kernels)); }

  uint32_t insert(uint32_t neighbour, bool before, const std::string& name, double us) {
    Task task = edit_.original()[original(neighbour)];
    task.name = edit_.name(name);
    task.duration = time_of(us);
    task.gap = Nanoseconds(0);
    task.op_instance = task.event = kNoLink;
    const TaskId made =
        before ? edit_.insert_before(original(neighbour), task) : edit_.insert_after(original(neighbour), task);
    return added(made);
  }
  uint32_t insert_kernel(uint32_t neighbour, bool before, const std::string& name, double us, double host_us) {
    return added(whatif::insert_kernel(edit_, original(neighbour), before ? whatif::Side::before : whatif::Side::after,
                                       name, time_of(us), time_of(host_us)));
  }
  void depend(uint32_t after, uint32_t before, double lag_us) {
    if (after >= count_ || before >= count_) throw py::index_error("there is no such task");
    edit_.depend(TaskId(after), {TaskId(before), Anchor::end, Nanoseconds(static_cast<int64_t>(lag_us * 1000))});
  }
  void schedule(uint32_t task) { edit_.schedule(edit_.original().lane(original(task))); }
  void commit() { require(iteration_.edited.commit(edit_)); }

 private:
  [[nodiscard]] TaskId original(uint32_t task) const { return checked(edit_.original(), task); }
  [[nodiscard]] std::vector<TaskId> original(const std::vector<uint32_t>& tasks) const {
    return checked(edit_.original(), tasks);
  }
  static Nanoseconds time_of(double us) {
    if (!(us >= 0) || us > 1e12) throw py::value_error("a duration is not below zero");
    return Nanoseconds(static_cast<int64_t>(us * 1000));
  }
  uint32_t added(TaskId task) {
    count_ = std::max<size_t>(count_, task.value + 1);
    return task.value;
  }

  PythonIteration& iteration_;
  GraphEdit edit_;
  size_t count_;
};

std::vector<std::pair<std::string, std::string>> known_optimizations() {
  std::vector<std::pair<std::string, std::string>> known;
  for (const whatif::Optimization& one : whatif::optimizations()) known.emplace_back(one.name, one.summary);
  return known;
}

}  // namespace

void add_whatif(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("optimizations", &known_optimizations);
  py::class_<PythonTask>(module, "Task")
      .def_readonly("id", &PythonTask::id)
      .def_readonly("kind", &PythonTask::kind)
      .def_readonly("name", &PythonTask::name)
      .def_readonly("op", &PythonTask::op)
      .def_readonly("module", &PythonTask::module)
      .def_readonly("phase", &PythonTask::phase)
      .def_readonly("lane", &PythonTask::lane)
      .def_readonly("duration_us", &PythonTask::duration_us)
      .def_readonly("gap_us", &PythonTask::gap_us);
  py::class_<PythonIteration>(module, "EditableIteration")
      .def_static("from_trace", &PythonIteration::from_trace, py::arg("path"), py::arg("unprofiled") = true,
                  py::arg("gpu") = "", Unlocked())
      .def_static("from_model", &PythonIteration::from_model, py::arg("model"), py::arg("batch") = py::none(),
                  py::arg("gpu") = "", py::arg("settings") = std::map<std::string, std::string>(), Unlocked())
      .def("copy", [](const PythonIteration& edited) { return PythonIteration(edited); })
      .def("apply", &PythonIteration::apply, py::arg("optimization"), Unlocked())
      .def("iteration_ms", &PythonIteration::iteration_ms, Unlocked())
      .def("gpu_ms", [](const PythonIteration& edited) { return milliseconds(edited.edited.device_busy()); })
      .def("assume", [](PythonIteration& edited, const std::string& text) { edited.edited.assume(text); })
      .def_property_readonly("assumptions", [](const PythonIteration& edited) { return edited.edited.assumptions; })
      .def("__len__", [](const PythonIteration& edited) { return edited.edited.graph().size(); })
      .def("task", [](const PythonIteration& edited,
                      uint32_t id) { return described(edited.edited.graph(), checked(edited.edited.graph(), id)); })
      .def(
          "select",
          [](const PythonIteration& edited, const std::string& kind, const std::string& name, const std::string& op,
             const std::string& module_name, const std::string& phase, const std::string& lane,
             const std::function<bool(const PythonTask&)>& predicate) {
            return selected(edited.edited.graph(), {kind, name, op, module_name, phase, lane, predicate});
          },
          py::kw_only(), py::arg("kind") = "", py::arg("name") = "", py::arg("op") = "", py::arg("module") = "",
          py::arg("phase") = "", py::arg("lane") = "", py::arg("predicate") = nullptr);
  py::class_<PythonEdit>(module, "Edit")
      .def(py::init<PythonIteration&>(), py::arg("edited"), py::keep_alive<1, 2>())
      .def("scale", &PythonEdit::scale, py::arg("tasks"), py::arg("factor"))
      .def("scale_gaps", &PythonEdit::scale_gaps, py::arg("tasks"), py::arg("factor"))
      .def("set_duration", &PythonEdit::set_duration, py::arg("task"), py::arg("us"))
      .def("set_priority", &PythonEdit::set_priority, py::arg("task"), py::arg("priority"))
      .def("remove", &PythonEdit::remove, py::arg("tasks"))
      .def("remove_kernels", &PythonEdit::remove_kernels, py::arg("kernels"))
      .def("insert", &PythonEdit::insert, py::arg("neighbour"), py::arg("before"), py::arg("name"), py::arg("us"))
      .def("insert_kernel", &PythonEdit::insert_kernel, py::arg("neighbour"), py::arg("before"), py::arg("name"),
           py::arg("us"), py::arg("host_us"))
      .def("depend", &PythonEdit::depend, py::arg("after"), py::arg("before"), py::arg("lag_us") = 0.0)
      .def("schedule", &PythonEdit::schedule, py::arg("task"))
      .def("commit", &PythonEdit::commit);
}

}  // namespace forerun::python
