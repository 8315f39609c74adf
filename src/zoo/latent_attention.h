// Multi-head latent attention of DeepSeek V2 and V3: keys and values are expanded from a narrow projection, and one rotary
// key is shared by all heads.
//
// Source: DeepseekV2Attention and DeepseekV3Attention of transformers 5.22, sdpa, key-value cache off.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/decoder_parts.h"

namespace forerun::zoo {

// How rotary positions are applied: to halves of a head, to pairs of neighbours, or to pairs as complex numbers (V2).
enum class LatentRotary : uint8_t { halves, pairs, complex };

struct LatentOptions {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_rank = 0;  // width that queries are expanded from; 0: they are projected at once
  int64_t key_rank = 0;    // of keys and values
  int64_t plain = 0;       // part of a query's and a key's head without positions
  int64_t rotary = 0;      // and with them
  int64_t value = 0;       // width of a value's head
  double dropout = 0;
  double scale = 1;
  bool bias = false;
  LatentRotary kind = LatentRotary::pairs;
};

class LatentAttention {
 public:
  LatentAttention(ForwardBuilder& b, std::string_view name, const LatentOptions& options);
  // `tables`: of complex numbers, cosine alone counts.
  TensorId operator()(TensorId x, const RotaryTables& tables, std::optional<TensorId> mask) const;

 private:
  struct Rotated {
    TensorId query, key;
  };
  [[nodiscard]] TensorId queries(TensorId x) const;
  [[nodiscard]] Rotated rotate(TensorId query, TensorId key, const RotaryTables& tables) const;
  [[nodiscard]] TensorId joined_key(TensorId expanded, TensorId plain, TensorId rotated) const;

  ForwardBuilder& b_;
  std::string path_;
  LatentOptions o_;
  std::optional<Linear> query_, query_down_, query_up_, key_down_, key_up_, out_;
  std::optional<CastingRmsNorm> query_norm_, key_norm_;
};

// x of rank 4 times such a table, pairs of neighbours at a time; the table is spread over what it has not.
TensorId turned_as_complex(ForwardBuilder& b, TensorId x, TensorId table);

// The table of rotary positions as complex numbers: [1, length, width / 2].
RotaryTables complex_rotary_table(ForwardBuilder& b, TensorId frequencies, TensorId positions);

}  // namespace forerun::zoo
