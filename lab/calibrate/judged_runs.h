// Whole models that others ran on other GPUs, predicted and judged alone: no constant and no range rests on them, since their
// software is another one and nothing that they ran on the GPU that was measured tells by how much.
//
// From PipeDream (layer_profiles.csv), a V100 in fp32: how long the backward passes of convolutional networks took, the sum of their
// layers. Forward passes are not judged: the profiler waited for every layer, some 0.2 ms each, and read images in the first.
//   model,node,layer,fwd_ms,bwd_ms,activation_bytes,param_bytes
//   vgg16,node2,"Conv2d(3, 64, kernel_size=(3, 3), ...)",10.2,20.1,1644167168.000,7168.000
// From HKBU (throughput.csv), an RTX 2080 Ti in fp32: training on one GPU of those that the suite ddl-benchmark has, eager attention.
// From LLM Foundry (benchmark.csv): MPT models on A100 and H100 in bf16, on one machine of 8, without checkpointing and up to 8,192
// tokens. What is predicted is a micro-batch's forward and backward pass on one GPU; what they measured also has its share of the update
// and what of FSDP's exchange does not hide (`scale` predicts all of it: suite llm-foundry).
#pragma once

#include <string>

#include "lab/calibrate/device_models.h"

namespace forerun {

OtherGpuRuns runs_of_pipedream(const std::string& folder, const DeviceCatalogue& devices,
                               const KnowledgeFor& cost_models);
OtherGpuRuns runs_of_hkbu(const std::string& folder, const DeviceCatalogue& devices, const KnowledgeFor& cost_models);
OtherGpuRuns runs_of_foundry(const std::string& folder, const DeviceCatalogue& devices,
                             const KnowledgeFor& cost_models);

}  // namespace forerun
