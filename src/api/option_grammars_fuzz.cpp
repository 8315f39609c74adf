// Fuzzes what users write behind options: the first byte picks the grammar, the rest is the text. What is taken must
// make sense: values that are there, plans that can be completed or say why not.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/prices.h"
#include "api/schedule.h"
#include "api/sweep.h"
#include "base/check.h"
#include "cluster/machine.h"
#include "cluster/policies.h"
#include "cluster/sources/cell_values.h"
#include "cluster/synthetic.h"
#include "cost/collective/link_name.h"
#include "device/catalogue.h"
#include "memory/allocator_settings.h"
#include "predict/setup_text.h"
#include "scale/plan.h"
#include "whatif/optimizations.h"

namespace {

using namespace forerun;

template <class T>
bool read_well(const Result<T>& read) {
  CHECK(read.ok() || !read.error().what.empty(), "an error without what");
  return read.ok();
}

void read_axis(const std::string& text) {
  const auto axis = parse_axis(text);
  if (!read_well(axis)) return;
  CHECK(!axis->name.empty() && !axis->values.empty() && axis->values.size() <= 1'000'000, "an axis without values");
  const std::vector<SweepAxis> axes = {*axis, {"b", {"1", "2"}}};
  const auto size = product_size(axes);
  if (read_well(size)) CHECK(product_values(axes, *size - 1).back() == "2", "the last of a product");
}

void read_plan(const std::string& text) {
  const auto request = scale::parse_plan(text);
  if (!read_well(request)) return;
  for (const int64_t gpus : {1, 8, 48, 1'000'000}) {
    const auto plan = scale::complete(*request, gpus, 8, 1024, 0);
    if (!read_well(plan) || !scale::check_plan(*plan).ok()) continue;
    CHECK(plan->gpus() == gpus, "a plan for another number of GPUs");
    static_cast<void>(scale::describe(*plan));
  }
}

void read_network(const std::string& text) {
  static const DeviceCatalogue catalogue = [] {
    DeviceCatalogue made;
    const Status added = made.add(Link{"InfiniBand HDR", {"hdr"}, Nanoseconds{2000}, 25e9});
    CHECK(added.ok(), "a link that cannot be added");
    return made;
  }();
  const auto link = network_by_name(text, catalogue);
  if (read_well(link)) CHECK(link->bandwidth > 0 && link->bandwidth < 1e300, "a network without a rate");
}

void read_cluster_words(const std::string& text) {
  const auto cluster = cluster::parse_cluster(text);
  if (read_well(cluster)) CHECK(cluster->gpus() > 0, "a cluster without GPUs");
  static_cast<void>(read_well(cluster::parse_synthetic(text)));
  const auto quotas = cluster::parse_quotas({text});
  if (read_well(quotas)) CHECK(quotas->front().gpus >= 0, "a negative quota");
  const auto draw = cluster::parse_draw(text);
  if (read_well(draw))
    CHECK(draw->deadlines >= 0 && draw->slack.most >= draw->slack.least, "an odd range to draw from");
  static_cast<void>(cluster::parse_date(text));
  static_cast<void>(cluster::parse_seconds(text));
  static_cast<void>(read_well(parse_job_format(text)));
  static_cast<void>(read_well(parse_when(text, "--from")));
}

void read_setup(const std::string& text) {
  const auto setup = parse_setup({.precision = text.substr(0, text.find('\n')),
                                  .optimizer = text.substr(std::min(text.find('\n'), text.size() - 1) + 1)});
  if (!read_well(setup)) return;
  const OptimizerSpec& optimizer = setup->optimizer;
  CHECK(optimizer.momentum >= 0 && optimizer.weight_decay >= 0 && optimizer.learning_rate >= 0, "an odd optimizer");
}

void read_prices(const std::string& text) {
  static const DeviceCatalogue catalogue = [] {
    DeviceCatalogue made;
    Device device;
    device.name = "NVIDIA T4";
    device.aliases = {"t4"};
    const Status added = made.add(device);
    CHECK(added.ok(), "a device that cannot be added");
    return made;
  }();
  const auto prices = parse_prices({text}, catalogue);
  if (!read_well(prices)) return;
  for (const GpuPrice& price : *prices) CHECK(price.per_hour >= 0 && price.per_hour <= 1e6, "an odd price");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 9) {  // '0' is 3, '6' is 0
    case 4: read_axis(text); break;
    case 5: read_plan(text); break;
    case 6: read_network(text); break;
    case 7: {
      const auto policy = cluster::make_policy(text);
      if (read_well(policy)) CHECK(*policy != nullptr, "a policy that is none");
      break;
    }
    case 8: static_cast<void>(read_well(parse_allocator_settings(text))); break;
    case 0: {
      const auto application = whatif::parse_application(text);
      if (read_well(application)) CHECK(application->optimization != nullptr, "an optimization that is none");
      break;
    }
    case 1:
      if (!text.empty()) read_setup(text);
      break;
    case 2: read_prices(text); break;
    default: read_cluster_words(text); break;
  }
  return 0;
}
