# The Python extension oxyfuel._core.
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE NANOBIND_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED PATHS ${NANOBIND_DIR})
nanobind_add_module(_core NB_STATIC NOMINSIZE NOSTRIP ${CMAKE_SOURCE_DIR}/src/pybind/module/core.cc)
target_link_libraries(_core PRIVATE oxyfuel_pybind oxyfuel_driver)
target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
# The package says at import which release of PyTorch it needs.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/package/oxyfuel/_build.py @ONLY CONTENT
  "\"\"\"Written by the build.\"\"\"\n\nTORCH_RELEASE = \"@OXYFUEL_TORCH_RELEASE@\"\n")
if(NOT SKBUILD)  # for development the package is a folder of the build, with the Python files as links
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package/oxyfuel)
  file(GLOB python_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/oxyfuel/*.py)
  foreach(file IN LISTS python_files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${CMAKE_BINARY_DIR}/package/oxyfuel/${name} SYMBOLIC)
  endforeach()
  # And the metadata that an installed package has: torch.compile finds the entry point there.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pyproject.toml)
  file(GLOB stale_metadata ${CMAKE_BINARY_DIR}/package/*.dist-info)
  if(stale_metadata)
    file(REMOVE_RECURSE ${stale_metadata})
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} -c
                  "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as write; write(sys.argv[1])"
                  ${CMAKE_BINARY_DIR}/package
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
install(TARGETS _core LIBRARY DESTINATION oxyfuel)
install(FILES ${CMAKE_BINARY_DIR}/package/oxyfuel/_build.py DESTINATION oxyfuel)
