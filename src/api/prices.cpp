#include "api/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/options_text.h"
#include "base/toml_file.h"

namespace forerun {
namespace {

constexpr double kMostPrice = 1e6;

Status add_price(std::string_view name, const std::optional<double>& number, const std::string& shown,
                 const std::string& where, const DeviceCatalogue& devices, std::vector<GpuPrice>& prices) {
  const auto device = devices.find(name);
  if (!device) return device.error().within(where);
  if (!number || !(*number >= 0 && *number <= kMostPrice)) {
    return Error{fmt::format("the price of {} cannot be '{}'", name, shown), where,
                 fmt::format("give a number from 0 to {:.0f}", kMostPrice)};
  }
  const auto same = [&](const GpuPrice& other) { return other.gpu == device->name; };
  if (std::any_of(prices.begin(), prices.end(), same)) {
    return Error{fmt::format("{} has two prices", device->name), where, "give each GPU one"};
  }
  prices.push_back({device->name, *number});
  return {};
}

std::string shown_value(const toml::node& node) {
  if (const auto text = node.value<std::string>()) return *text;
  if (const auto number = node.value<double>()) return fmt::format("{}", *number);
  return node.is_table() ? "{...}" : node.is_array() ? "[...]" : "?";
}

Error odd_key(const std::string& key, const toml::node& node, const std::string& where) {
  return {fmt::format("a price file has no '{}'", key), line_of(node, where),
          "known are currency and the table [per_hour]"};
}

Result<Prices> prices_of(const toml::table& file, const std::string& where, const DeviceCatalogue& devices) {
  Prices prices;
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    if (name == "currency") {
      const auto text = node.value<std::string>();
      if (!text || text->empty() || text->size() > 16) {
        return Error{"the currency is no short text", line_of(node, where), "write it as currency = \"USD\""};
      }
      prices.currency = *text;
      continue;
    }
    if (name != "per_hour" || !node.is_table()) return odd_key(name, node, where);
    for (const auto& [gpu, price] : *node.as_table()) {
      const std::optional<double> number = price.is_number() ? price.value<double>() : std::nullopt;
      if (Status added = add_price(gpu.str(), number, shown_value(price), line_of(price, where), devices, prices.gpus);
          !added.ok()) {
        return added.error();
      }
    }
  }
  if (prices.any()) return prices;
  return Error{"the file has no prices", where, "write a table [per_hour] with lines such as h100 = 2.5"};
}

}  // namespace

std::optional<double> Prices::of(const std::string& gpu) const {
  for (const GpuPrice& price : gpus) {
    if (price.gpu == gpu) return price.per_hour;
  }
  return std::nullopt;
}

Result<std::vector<GpuPrice>> parse_prices(const std::vector<std::string>& texts, const DeviceCatalogue& devices) {
  const OptionGrammar grammar{"--price", "write GPU=PRICE an hour, for instance h100=2.5"};
  std::vector<GpuPrice> prices;
  for (const std::string& text : texts) {
    const auto pairs = parse_key_values(text, grammar);
    if (!pairs) return pairs.error();
    for (const auto& [name, value] : *pairs) {
      if (Status added = add_price(name, number_in(value), value, "--price", devices, prices); !added.ok()) {
        return added.error();
      }
    }
  }
  return prices;
}

Result<Prices> parse_price_file(const std::string& text, const std::string& where, const DeviceCatalogue& devices) {
  const auto file = parse_toml(text, where, "see examples/prices.toml: names with spaces stand in quotes");
  if (!file) return file.error();
  return prices_of(*file, where, devices);
}

Result<Prices> read_prices(const std::string& file, const DeviceCatalogue& devices) {
  const auto text = read_toml_text(file, "price file", "examples/prices.toml shows one");
  if (!text) return text.error();
  return parse_price_file(*text, file, devices);
}

Result<Prices> asked_prices(const std::string& file, const std::vector<std::string>& texts,
                            const DeviceCatalogue& devices) {
  Prices prices;
  if (!file.empty()) {
    Result<Prices> read = read_prices(file, devices);
    if (!read) return read.error();
    prices = std::move(*read);
  }
  const auto given = parse_prices(texts, devices);
  if (!given) return given.error();
  for (const GpuPrice& price : *given) {
    std::erase_if(prices.gpus, [&](const GpuPrice& other) { return other.gpu == price.gpu; });
    prices.gpus.push_back(price);
  }
  return prices;
}

Result<std::optional<double>> price_of_run(const Prices& prices, const Device& device, const JobLength& job) {
  if (!prices.any()) return std::optional<double>();
  if (!job.any()) {
    return Error{"a price makes the cost of a whole run", "--price, --prices",
                 "tell its length: --samples, --tokens, --iterations, or --epochs with --dataset-size"};
  }
  const std::optional<double> price = prices.of(device.name);
  if (price) return price;
  return Error{fmt::format("no price is given for {}", device.name), "--price, --prices",
               fmt::format("add it to the file, or give --price {}=PRICE",
                           device.aliases.empty() ? device.name : device.aliases.front())};
}

}  // namespace forerun
