# The Python extension oxyfuel._core.
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE NANOBIND_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED PATHS ${NANOBIND_DIR})
nanobind_add_module(_core NB_STATIC NOMINSIZE NOSTRIP ${CMAKE_SOURCE_DIR}/src/pybind/module/core.cc)
target_link_libraries(_core PRIVATE oxyfuel_pybind oxyfuel_driver)
target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
if(NOT SKBUILD)  # for development the extension lies beside the Python files
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/python/oxyfuel)
  # And the metadata that an installed package has: torch.compile finds the entry point there.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pyproject.toml)
  file(GLOB stale_metadata ${CMAKE_SOURCE_DIR}/python/*.dist-info)
  if(stale_metadata)
    file(REMOVE_RECURSE ${stale_metadata})
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} -c "from scikit_build_core.build import prepare_metadata_for_build_wheel as write; write('python')"
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
install(TARGETS _core LIBRARY DESTINATION oxyfuel)
