// What a tensor group exchanges (tensor_parallel.h), as Megatron's _CopyToModelParallelRegion and
// _ReduceFromModelParallelRegion do it: an all-reduce in place, backward or forward; and what expert and context groups do.
#include "derive/aten.h"
#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/tensor_parallel.h"

namespace forerun::derive::aten {

Value enter_group(Tracer& t, const Value& x) {
  Value y = t.alias(x, x->dtype, x->sizes, x->strides);
  if (Node* node = t.record("CopyToTensorGroupBackward", {x}, {y}); node != nullptr) {
    node->backward = [&t](Values gradients) {
      t.emit(kGroupReduction, {gradients[0]}, {gradients[0]});
      return gradients;
    };
  }
  t.emit("aten.view_as.default", {x, x}, {y});  // what a function that hands back its input is given in its place
  return y;
}

Value leave_group(Tracer& t, const Value& x) {
  t.emit(kGroupReduction, {x}, {x});
  Value y = t.alias(x, x->dtype, x->sizes, x->strides);
  if (Node* node = t.record("ReduceFromTensorGroupBackward", {x}, {y}); node != nullptr) {
    node->backward = [](Values gradients) { return gradients; };
  }
  return y;
}

Value swap_rows(Tracer& t, const Value& x) {
  Value y = t.fresh(x->dtype, x->sizes);
  if (Node* node = t.record("AllToAllBackward", {x}, {y}); node != nullptr) {
    node->backward = [&t](Values gradients) {
      const Value& g = gradients[0];
      Value back = t.fresh(g->dtype, g->sizes);
      t.emit(kRowSwap, {g}, {back});
      return Values{back};
    };
  }
  t.emit(kRowSwap, {x}, {y});
  return y;
}

Value gather_sequence(Tracer& t, const Value& x, const Shape& whole) {
  Value y = t.fresh(x->dtype, whole);
  if (Node* node = t.record("AllGatherBackward", {x}, {y}); node != nullptr) {
    node->backward = [&t, dtype = x->dtype, sizes = x->sizes](Values gradients) {
      Value part = t.fresh(dtype, sizes);
      t.emit(kSequenceScattering, {gradients[0]}, {part});
      return Values{part};
    };
  }
  t.emit(kSequenceGathering, {x}, {y});
  return y;
}

}  // namespace forerun::derive::aten
