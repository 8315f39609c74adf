#include "base/csv_cells.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(CsvCells, QuotesHoldCommas) {
  EXPECT_EQ(csv_cells("a,\"1,024\",,b\r"), (std::vector<std::string>{"a", "1,024", "", "b"}));
  EXPECT_EQ(csv_cells(""), std::vector<std::string>{""});
  EXPECT_EQ(csv_cells("\"open, to the end"), std::vector<std::string>{"open, to the end"});
}

TEST(CsvCells, QuotesInsideACellStandTwice) {
  EXPECT_EQ(csv_cells("\"a \"\"b\"\", c\", d ,\"\""), (std::vector<std::string>{"a \"b\", c", "d", ""}));
  EXPECT_EQ(csv_cells("5\" disk,x"), (std::vector<std::string>{"5\" disk", "x"}));
  std::vector<std::string> cells = {"of", "the", "row", "before"};
  EXPECT_EQ(split_csv("a|b", '|', cells), 2U);
  EXPECT_EQ(cells[0] + cells[1], "ab");
}

TEST(CsvCells, WrittenCellsReadBackAsTheyWere) {
  for (const char* text : {"", "plain", "a,b", "a \"quoted\" word", " blank ", "\"", "1,024", "x\t"}) {
    EXPECT_EQ(csv_cells(csv_quoted(text) + ",next"), (std::vector<std::string>{text, "next"})) << text;
  }
  EXPECT_EQ(csv_quoted("plain"), "plain");
}

TEST(CsvCells, WhatASpreadsheetWouldRunIsText) {
  EXPECT_EQ(csv_cell("=1+1"), "'=1+1");
  EXPECT_EQ(csv_cell("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  for (const char* text : {"+cmd", "-x", "@sum", "\tx", "\rx", "-", "-1-1"}) {
    EXPECT_NE(csv_cell(text).find('\''), std::string::npos) << text;
  }
  for (const char* number : {"-1", "+2", "-1.5e-3", "7"}) EXPECT_EQ(csv_cell(number), number);
  EXPECT_EQ(csv_cell("a=b"), "a=b");
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
