// Turns a training run, captured or derived, into an Example: the same description of ops for every learned predictor.
//
// Amounts come from derive/work.h. Hyper-parameters are the figures that a model's source would name, at fixed places by
// kind of op (the list stands in record_example.cpp). Marks have no place here, views do (OpRow::on_gpu is false for what has no
// kernels). Left out: modules, attributes that no kernel depends on, shapes beyond the figures listed.
#pragma once

#include "graph/training_run.h"
#include "lab/dataset/dataset.h"

namespace forerun::learn {

// Without targets; the split is the caller's to set. Rows and names go into `data`, the example does not.
Example example_of(const TrainingRun& run, DataSet& data);

}  // namespace forerun::learn
