# Writes a source with the built page in it, run as a script:
#   cmake -D PAGE=web/dist/page.html -D OUTPUT=page_template.cpp -P PageTemplate.cmake
# The page is ASCII (web/build.mjs sees to it). C++ compilers need not take a literal of more than 65,536 characters, nor several
# that stand together as one, so the page is an array of short ones.
file(READ ${PAGE} page)
string(LENGTH "${page}" length)
set(piece 8000)
set(literals "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${page}" ${at} ${piece} text)
  string(APPEND literals "R\"~page~(${text})~page~\",\n")
  math(EXPR at "${at} + ${piece}")
endwhile()
file(WRITE ${OUTPUT} "#include \"page/page_template.h\"

namespace forerun::page {

const std::string& page_template() {
  static constexpr const char* kPieces[] = {
${literals}};
  static const std::string whole = [] {
    std::string text;
    for (const char* piece : kPieces) text += piece;
    return text;
  }();
  return whole;
}

}
")
