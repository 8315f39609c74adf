# cmake --install: the programs, the data that they read, the header for policies of users, completions and manual pages made from their help.
#
# data/ is installed without what only tests and research need (h200, weights, captures, resources). The program finds it
# from its own address (base/data_dir.h), so that a prefix can be moved.

include(GNUInstallDirs)
install(TARGETS forerun RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET forerun-lab)
  install(TARGETS forerun-lab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)  # where it was built
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/forerun/data
        FILES_MATCHING PATTERN "*"
        PATTERN h200 EXCLUDE PATTERN weights EXCLUDE PATTERN captures EXCLUDE PATTERN resources EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/src/cluster/external/forerun_policy.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(pages ${CMAKE_BINARY_DIR}/install)
install(CODE "
  foreach(shell bash zsh fish)
    execute_process(COMMAND $<TARGET_FILE:forerun> completions \${shell} OUTPUT_FILE ${pages}.\${shell}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(REMOVE_RECURSE ${pages}-man)
  execute_process(COMMAND $<TARGET_FILE:forerun> man --out ${pages}-man COMMAND_ERROR_IS_FATAL ANY)
")
install(FILES ${pages}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME forerun)
install(FILES ${pages}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _forerun)
install(FILES ${pages}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME forerun.fish)
install(DIRECTORY ${pages}-man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
