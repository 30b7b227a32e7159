# oxyfuel_frame_testing: lets pytest drive the frame layers of any supported Python, without torch.
Python_add_library(oxyfuel_frame_testing MODULE WITH_SOABI
  ${CMAKE_SOURCE_DIR}/tests/python/frame/frame_testing/module.cpp
  ${CMAKE_SOURCE_DIR}/tests/python/frame/frame_testing/runners.cpp)
target_link_libraries(oxyfuel_frame_testing PRIVATE oxyfuel_hook)
set_target_properties(oxyfuel_frame_testing PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/frame_testing EXCLUDE_FROM_ALL OFF)
