#include "base/csv_cells.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(CsvCells, QuotesHoldCommas) {
  EXPECT_EQ(csv_cells("a,\"1,024\",,b\r"), (std::vector<std::string>{"a", "1,024", "", "b"}));
  EXPECT_EQ(csv_cells(""), std::vector<std::string>{""});
  EXPECT_EQ(csv_cells("\"open, to the end"), std::vector<std::string>{"open, to the end"});
}

TEST(CsvCells, ANumberIsTheWholeCell) {
  int64_t whole = 0;
  double real = 0;
  EXPECT_TRUE(parse_cell("12", whole));
  EXPECT_EQ(whole, 12);
  EXPECT_TRUE(parse_cell("1.5e3", real));
  EXPECT_EQ(real, 1500);
  for (const char* wrong : {"", " 1", "1 ", "1.5x", "0x1"}) EXPECT_FALSE(parse_cell(wrong, real)) << wrong;
  EXPECT_FALSE(parse_cell("1.5", whole));
}

}  // namespace
}  // namespace forerun
