#include "lab/dataset/other_gpus/tiles.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace forerun::learn {
namespace {

constexpr double kBytesOfElement = 4;
constexpr size_t kNumbersOfRow = 8;  // kind, batch, m, n, k, compute capability, tile

double squared_log_distance(int64_t a, int64_t b) {
  const double difference =
      std::log(static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b)));
  return difference * difference;
}

double distance(const GemmShape& a, const GemmShape& b) {
  return squared_log_distance(a.batch, b.batch) + squared_log_distance(a.m, b.m) + squared_log_distance(a.n, b.n) +
         squared_log_distance(a.k, b.k);
}

// A number of two or three digits that ends before or begins at `at`.
std::optional<int64_t> digits(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 16 || value > 512) return std::nullopt;
  return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Tile> tile_in_name(std::string_view kernel) {
  for (size_t x = kernel.find('x'); x != std::string_view::npos; x = kernel.find('x', x + 1)) {
    size_t first = x;
    while (first > 0 && is_digit(kernel[first - 1])) --first;
    size_t end = x + 1;
    while (end < kernel.size() && is_digit(kernel[end])) ++end;
    const auto columns = digits(kernel.substr(first, x - first));
    const auto rows = digits(kernel.substr(x + 1, end - x - 1));
    if (columns && rows) return Tile{.m = *rows, .n = *columns};
  }
  return std::nullopt;
}

TileTable::TileTable(const std::vector<ProfiledTile>& profiled, size_t most) {
  std::map<std::pair<WorkKind, int>, std::vector<const ProfiledTile*>> groups;
  for (const ProfiledTile& row : profiled) groups[{row.kind, row.compute_capability}].push_back(&row);
  for (const auto& [key, rows] : groups) {
    const size_t kept = std::min(most, rows.size());
    for (size_t i = 0; i < kept; ++i) rows_.push_back(*rows[i * rows.size() / kept]);
  }
}

Tile TileTable::tile_for(const GpuWork& work, const Device& device) const {
  Tile best;
  std::pair least{std::numeric_limits<int>::max(), std::numeric_limits<double>::infinity()};
  for (const ProfiledTile& row : rows_) {
    if (row.kind != work.kind) continue;
    const int generations = std::abs(row.compute_capability - device.compute_capability);
    if (generations > least.first) continue;
    const std::pair near{generations, distance(row.product, work.product)};
    if (near < least) {
      least = near;
      best = row.tile;
    }
  }
  return best;
}

nlohmann::json TileTable::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ProfiledTile& row : rows_) {
    list.push_back({static_cast<int>(row.kind), row.product.batch, row.product.m, row.product.n, row.product.k,
                    row.compute_capability, row.tile.m, row.tile.n});
  }
  return list;
}

Result<TileTable> TileTable::from_json(const nlohmann::json& json) {
  TileTable table;
  if (!json.is_array()) return Error{"the profiled tiles are no list", "", "train the predictor again"};
  try {
    for (const auto& row : json) {
      const auto numbers = row.get<std::vector<int64_t>>();
      const bool sound =
          numbers.size() == kNumbersOfRow && numbers[0] >= 0 && numbers[0] <= 2 && numbers[6] > 0 && numbers[7] > 0;
      if (!sound) return Error{"a profiled tile is broken", "", "train the predictor again"};
      table.rows_.push_back({.kind = static_cast<WorkKind>(numbers[0]),
                             .product = {.batch = numbers[1], .m = numbers[2], .n = numbers[3], .k = numbers[4]},
                             .compute_capability = static_cast<int>(numbers[5]),
                             .tile = {.m = numbers[6], .n = numbers[7]}});
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{error.what(), "", "train the predictor again"};
  }
  return table;
}

TiledWork tiled(const GpuWork& work, const Tile& tile) {
  TiledWork cut;
  if (!is_product(work.kind)) {
    cut.tiles = usual_blocks(work);
    cut.tile_flops = std::max(work.flops, 1.0) / cut.tiles;
    cut.tile_bytes = work.bytes / cut.tiles;
    return cut;
  }
  const auto [m, n, k] = std::tuple(static_cast<double>(tile.m), static_cast<double>(tile.n),
                                    static_cast<double>(std::max<int64_t>(1, work.product.k)));
  cut.tiles = static_cast<double>(work.product.repeats * work.product.batch) *
              std::ceil(static_cast<double>(work.product.m) / m) * std::ceil(static_cast<double>(work.product.n) / n);
  cut.tile_flops = 2 * m * n * k;
  cut.tile_bytes = kBytesOfElement * (m * k + k * n + m * n);
  return cut;
}

}  // namespace forerun::learn
