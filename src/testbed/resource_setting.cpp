#include "testbed/resource_setting.h"

#include <fmt/format.h>

#include <charconv>

namespace forerun::scale {
namespace {

constexpr double kMostNodes = 64;

}  // namespace

Result<ResourceSetting> resource_setting(std::string_view name) {
  const auto wrong = [&] {
    return Error{"'" + std::string(name) + "' is no setting", "", "give one such as P1w2-10G, P2w4-1G or AR4-10G"};
  };
  const auto number = [](std::string_view& text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
  };
  ResourceSetting setting;
  std::string_view rest = name;
  if (rest.starts_with("AR")) {
    rest.remove_prefix(2);
    setting.servers = 0;
  } else if (rest.starts_with("P")) {
    rest.remove_prefix(1);
    if (!number(rest, setting.servers) || setting.servers < 1 || !rest.starts_with("w")) return wrong();
    rest.remove_prefix(1);
  } else {
    return wrong();
  }
  if (!number(rest, setting.workers) || !rest.starts_with("-")) return wrong();
  rest.remove_prefix(1);
  double rate = 0;
  if (!number(rest, rate) || !(rest == "G" || rest == "M") || !(rate > 0) || rate > 1e6) return wrong();
  const int64_t least = setting.servers == 0 ? 2 : 1;
  if (setting.workers < least || static_cast<double>(setting.workers + setting.servers) > kMostNodes) return wrong();
  setting.bits_per_second = rate * (rest == "G" ? 1e9 : 1e6);
  return setting;
}

std::string setting_name(const ResourceSetting& setting) {
  const std::string workers = std::to_string(setting.workers);
  const std::string nodes =
      setting.servers == 0 ? "AR" + workers : "P" + std::to_string(setting.servers) + "w" + workers;
  const bool giga = setting.bits_per_second >= 1e9;
  const std::string rate = fmt::format("{:g}{}", setting.bits_per_second / (giga ? 1e9 : 1e6), giga ? "G" : "M");
  return nodes + "-" + rate + (setting.servers == 0 ? " allreduce" : setting.sync ? " sync" : " async");
}

}  // namespace forerun::scale
