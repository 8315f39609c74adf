// The built page, web/dist/page.html, as the build embeds it (cmake/PageTemplate.cmake): no file is looked for when a page is
// written. It has places for a title, for what it may connect to and for its data; page.cpp fills them.
#pragma once

#include <string>

namespace forerun::page {

const std::string& page_template();  // ASCII

}  // namespace forerun::page
