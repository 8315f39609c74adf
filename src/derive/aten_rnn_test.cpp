#include <gtest/gtest.h>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

// The sizes that cuDNN 9.19 asked for on an H200, as recorded in data/h200.
TEST(Rnn, ReservesAsMuchAsMeasured) {
  struct Case {
    DType dtype;
    RnnKind kind;
    int64_t batch, length, hidden, layers, directions;
    double dropout;
    int64_t bytes;
  };
  const Case cases[] = {
      {DType::float16, RnnKind::lstm, 5, 215, 139, 1, 1, 0.0, 1494560},
      {DType::float32, RnnKind::lstm, 380, 100, 1500, 3, 1, 0.0, 3876000256},
      {DType::float16, RnnKind::gru, 8, 112, 293, 2, 1, 0.0, 6825984},
      {DType::float16, RnnKind::tanh, 16, 96, 1815, 1, 1, 0.0, 5575936},
      {DType::float16, RnnKind::lstm, 2, 150, 349, 1, 2, 0.0, 2094272},
      {DType::float16, RnnKind::relu, 1, 5, 650, 2, 2, 0.0, 39296},
      {DType::float16, RnnKind::gru, 2, 28, 1000, 8, 1, 0.2, 6209312},
      {DType::float16, RnnKind::tanh, 30, 28, 863, 2, 1, 0.2, 4440416},
      {DType::float16, RnnKind::tanh, 2, 35, 1500, 2, 2, 0.2, 1312800},
      {DType::float32, RnnKind::lstm, 3, 28, 24, 2, 2, 0.2, 178688},
  };
  for (const Case& c : cases) {
    RnnCall call;
    call.kind = c.kind;
    call.hidden = c.hidden;
    call.layers = c.layers;
    call.directions = c.directions;
    call.dropout = c.dropout;
    EXPECT_EQ(rnn_reserve_bytes(call, c.batch, c.length, c.dtype), c.bytes) << c.batch << " x " << c.length;
  }
}

}  // namespace
}  // namespace forerun::derive::aten
