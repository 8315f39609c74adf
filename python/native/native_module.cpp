// The Python module forerun._native: what the package forerun (python/forerun) is a face of. Users do not import it.
#include <pybind11/stl.h>

#include "cli/forerun_program.h"
#include "native.h"

namespace py = pybind11;

namespace forerun::python {

ask::Knowledge& knowledge() {
  static ask::Knowledge shared;
  return shared;
}

py::str python_text(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void raise(const Error& error) {
  const py::gil_scoped_acquire lock;
  const char* name = error.kind == ErrorKind::input     ? "InputError"
                     : error.kind == ErrorKind::stopped ? "Stopped"
                                                        : "LimitReached";
  const py::object type = py::module_::import("forerun.errors").attr(name);
  const py::object exception = type(python_text(error.what), python_text(error.where), python_text(error.remedy));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw py::error_already_set();
}

namespace {

// The command line, forerun itself: words from the program's name on; gives the exit code.
int run_program(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const py::gil_scoped_release release;
  return cli::forerun_program(static_cast<int>(words.size()), argv.data());
}

}  // namespace
}  // namespace forerun::python

PYBIND11_MODULE(_native, module) {
  module.attr("__version__") = FORERUN_VERSION;
  module.def("main", &forerun::python::run_program, py::arg("argv"));
  forerun::python::add_asking(module);
  forerun::python::add_whatif(module);
}
