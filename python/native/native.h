// What the parts of the Python module forerun._native share: the knowledge, errors as exceptions, and their registration.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "ask/knowledge.h"
#include "base/result.h"

namespace forerun::python {

// The process's own, read with the first question that needs it.
ask::Knowledge& knowledge();

// Raises the exception of forerun.errors that the kind calls for, with what, where and remedy. May be called without the GIL.
[[noreturn]] void raise(const Error& error);

// Text of ours as Python's; bytes that are no UTF-8 become U+FFFD.
pybind11::str python_text(const std::string& text);

template <class T>
T taken(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void require(const Status& status) {
  if (!status.ok()) raise(status.error());
}

void add_asking(pybind11::module_& module);  // ask_binding.cpp
void add_whatif(pybind11::module_& module);  // whatif_binding.cpp

}  // namespace forerun::python
