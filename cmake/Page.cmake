# Embeds the built page (web/dist/page.html) into the stage page. Building it anew takes Node: `npm ci && npm run build` in web/.
set(page ${CMAKE_SOURCE_DIR}/web/dist/page.html)
set(embedded ${CMAKE_BINARY_DIR}/page_template.cpp)
add_custom_command(
  OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -D PAGE=${page} -D OUTPUT=${embedded} -P ${CMAKE_SOURCE_DIR}/cmake/PageTemplate.cmake
  DEPENDS ${page} ${CMAKE_SOURCE_DIR}/cmake/PageTemplate.cmake
  VERBATIM)
target_sources(forerun_page PRIVATE ${embedded})
