// The model under torch.compile: the iteration as `forerun predict MODEL --compile` has it.
//
// Source: compile/compiled_iteration.h. The iteration is derived again, compiled, in place of the one so far, with the changes of its
// setup (precision, layout, optimizer, batch) that were applied before. Left out: traces, whose calls do not tell which tensors they
// read, and that is what kernels are fused by.
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_compile(EditableIteration& edited, const Parameters& parameters) {
  const Result<CompileMode> mode = parse_compile_mode(parameters.text("mode", "default"));
  if (!mode) return mode.error().within("--apply compile");
  if (edited.is_traced()) {
    return Error{"a trace does not tell which tensors its calls read, and that decides what is fused", "compile",
                 "ask about the model: its name, config.json, ONNX file or capture"};
  }
  if (!edited.only_setup_changed()) {
    return Error{"what was applied before changed kernels that compiling replaces", "compile", "apply compile first"};
  }
  if (edited.setup.compile != CompileMode::none) {
    return Error{"the model is compiled already", "compile", "apply compile once"};
  }
  TrainingSetup to = edited.setup;
  to.compile = *mode;
  if (Status status = edited.derive_again(to); !status.ok()) return status;
  edited.assume("torch.compile in mode " + std::string(name_of(*mode)) +
                "; `forerun predict MODEL --compile` tells what is assumed of it, and where its graph breaks");
  return {};
}

}  // namespace forerun::whatif
