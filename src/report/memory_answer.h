// A MemoryAnswer as text: ranges, the parts of the peak, its moment and what lives then.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "predict/memory_answer.h"

namespace forerun {

std::string_view text_of(FitVerdict verdict);  // "may not fit"

// "0.2 MiB", "139.80 GiB".
std::string size_text(Bytes bytes);

// The parts of the peak that are not nothing: name and bytes. They add up to what the driver shows.
std::vector<std::pair<std::string, Bytes>> parts_of(const MemoryEstimate& estimate, const MemoryAnswer& answer,
                                                    Bytes context);

// "iteration 2, backward: aten.mm.default in lm_head".
std::string moment_text(const PeakMoment& peak);

// What `predict` and `fit` print of the answer, below its headline.
std::string memory_text(const MemoryEstimate& estimate, const MemoryAnswer& answer, Bytes context);

// "DDP on 8 GPUs", "ZeRO 3 (FSDP) on 8 GPUs"; empty on one.
std::string parallel_text(const DataParallel& plan);

}  // namespace forerun
