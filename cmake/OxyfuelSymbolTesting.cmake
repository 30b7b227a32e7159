# oxyfuel_symbol_testing: lets pytest make tensors with symbolic sizes (tests/python/torch_api/test_symbolic_node.py).
nanobind_add_module(oxyfuel_symbol_testing NB_STATIC NOMINSIZE
  ${CMAKE_SOURCE_DIR}/tests/python/torch_api/symbol_testing/module.cpp)
target_link_libraries(oxyfuel_symbol_testing PRIVATE oxyfuel_torch_api)
oxyfuel_precompile(oxyfuel_symbol_testing dispatcher Python::Module oxyfuel_torch)
target_link_options(oxyfuel_symbol_testing PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(oxyfuel_symbol_testing PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/symbol_testing)
