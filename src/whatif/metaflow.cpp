// A graph substitution: some layers removed, others scaled.
//
// Source: MetaFlow (Jia et al.) finds substitutions such as merged parallel convolutions; as in Daydream the user says what
// a substitution does: remove=PART (layers or ops whose name contains it), scale=PART,factor=F. Assumed: nothing else
// changes.
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_metaflow(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> factor = parameters.positive("factor", 1);
  if (!factor) return factor.error().within("metaflow");
  if (!parameters.has("remove") && !parameters.has("scale")) {
    return Error{"neither remove nor scale is given", "metaflow",
                 "name layers or ops: metaflow:remove=conv2d#3,scale=conv2d#2,factor=1.4"};
  }
  const auto kernels_of = [&](const std::string& key) {
    const std::string part = parameters.text(key);
    if (part.empty()) return std::vector<TaskId>{};
    return select(edited.graph(), both(is_on_gpu(), either(of_module(part), of_op(part))));
  };
  const std::vector<TaskId> gone = kernels_of("remove"), scaled = kernels_of("scale");
  if (gone.empty() && scaled.empty()) {
    return Error{"no layer or op has such a name", "metaflow", "`forerun trace` lists ops and modules"};
  }
  GraphEdit edit(edited.graph());
  edit.scale(scaled, *factor);
  remove_kernels(edit, gone);
  edited.assume(std::to_string(gone.size()) + " kernels removed, " + std::to_string(scaled.size()) + " scaled by " +
                parameters.text("factor", "1"));
  return edited.commit(edit);
}

}  // namespace forerun::whatif
