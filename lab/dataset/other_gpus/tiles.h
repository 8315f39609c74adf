// Tiles: the parts that a kernel splits its output into, one thread block each, as NeuSight counts them.
//
// The tile of a product is that of the nearest product that was profiled (in the logarithms of its sizes), on the profiled GPU
// whose architecture is nearest: kernels' names tell it ("ampere_sgemm_128x64_tn"). What is no product has PyTorch's fixed blocks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "lab/dataset/other_gpus/gpu_work.h"

namespace forerun::learn {

// Rows and columns of the output that a block computes.
struct Tile {
  int64_t m = 128;
  int64_t n = 128;
  bool operator==(const Tile&) const = default;
};

// "ampere_sgemm_128x64_tn": 64 rows and 128 columns, since cuBLAS takes row-major matrices as transposed ones. Nothing of a name
// that tells none.
std::optional<Tile> tile_in_name(std::string_view kernel);

struct ProfiledTile {
  WorkKind kind = WorkKind::linear;
  GemmShape product;
  int compute_capability = 0;
  Tile tile;
};

class TileTable {
 public:
  TileTable() = default;
  // Keeps at most so many of each kind and architecture, evenly chosen.
  TileTable(const std::vector<ProfiledTile>& profiled, size_t most);

  [[nodiscard]] Tile tile_for(const GpuWork& work, const Device& device) const;
  [[nodiscard]] size_t size() const { return rows_.size(); }

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<TileTable> from_json(const nlohmann::json& json);

 private:
  std::vector<ProfiledTile> rows_;
};

// A piece of work cut into tiles.
struct TiledWork {
  double tiles = 1;
  double tile_flops = 0;
  double tile_bytes = 0;  // read and written by one
};
TiledWork tiled(const GpuWork& work, const Tile& tile);

}  // namespace forerun::learn
