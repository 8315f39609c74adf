// The constructors of the policies, one file each; policies.cpp lists them with their names.
#pragma once

#include <memory>

#include "cluster/policies.h"

namespace forerun::cluster {

std::unique_ptr<Policy> make_fifo(OptionReader& options);
std::unique_ptr<Policy> make_fifo_skip(OptionReader& options);
std::unique_ptr<Policy> make_sjf(OptionReader& options);
std::unique_ptr<Policy> make_sjf_skip(OptionReader& options);
std::unique_ptr<Policy> make_srsf(OptionReader& options);
std::unique_ptr<Policy> make_srsf_skip(OptionReader& options);
std::unique_ptr<Policy> make_srtf(OptionReader& options);
std::unique_ptr<Policy> make_easy(OptionReader& options);
std::unique_ptr<Policy> make_srtf_skip(OptionReader& options);
std::unique_ptr<Policy> make_srsf_preempt(OptionReader& options);
std::unique_ptr<Policy> make_las(OptionReader& options);
std::unique_ptr<Policy> make_gittins(OptionReader& options);
std::unique_ptr<Policy> make_conservative(OptionReader& options);
std::unique_ptr<Policy> make_optimus(OptionReader& options);
std::unique_ptr<Policy> make_goodput(OptionReader& options);
std::unique_ptr<Policy> make_fifo_pack(OptionReader& options);
std::unique_ptr<Policy> make_edf(OptionReader& options);
std::unique_ptr<Policy> make_edf_skip(OptionReader& options);
std::unique_ptr<Policy> make_allox(OptionReader& options);
std::unique_ptr<Policy> make_hydra(OptionReader& options);
std::unique_ptr<Policy> make_gavel(OptionReader& options);
std::unique_ptr<Policy> make_gavel_makespan(OptionReader& options);
std::unique_ptr<Policy> make_gavel_ftf(OptionReader& options);
std::unique_ptr<Policy> make_themis(OptionReader& options);
std::unique_ptr<Policy> make_sia(OptionReader& options);

}  // namespace forerun::cluster
