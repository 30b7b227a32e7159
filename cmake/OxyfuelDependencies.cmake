# Everything the build takes from outside.
find_package(fmt REQUIRED)
# Debian has fmt as a shared library, which a package would have to bring along, and as headers, which cost 4 s in
# every file that formats. So it is compiled here, once.
add_library(oxyfuel_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
target_include_directories(oxyfuel_fmt SYSTEM PUBLIC
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
find_package(Threads REQUIRED)
if(OXYFUEL_TESTS)
  find_package(doctest REQUIRED)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # Without the sloppiness ccache never hits on a file that uses a precompiled header, without the rest never across checkouts.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

if(OXYFUEL_WITH_TORCH)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import torch, os; print(os.path.dirname(torch.__file__), end='')"
    OUTPUT_VARIABLE TORCH_ROOT COMMAND_ERROR_IS_FATAL ANY)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import torch; print(int(torch.compiled_with_cxx11_abi()), end='')"
    OUTPUT_VARIABLE TORCH_CXX11_ABI COMMAND_ERROR_IS_FATAL ANY)
  # PyTorch's headers have an fmt of their own among them, which files that see PyTorch find first.
  add_library(oxyfuel_torch_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
  target_include_directories(oxyfuel_torch_fmt SYSTEM PUBLIC ${TORCH_ROOT}/include)
  add_library(torch_api INTERFACE)
  target_include_directories(torch_api SYSTEM INTERFACE
    ${TORCH_ROOT}/include ${TORCH_ROOT}/include/torch/csrc/api/include)
  target_compile_definitions(torch_api INTERFACE _GLIBCXX_USE_CXX11_ABI=${TORCH_CXX11_ABI})
  target_link_directories(torch_api INTERFACE ${TORCH_ROOT}/lib)
  target_link_libraries(torch_api INTERFACE oxyfuel_torch_fmt torch_python torch_cpu torch c10)
endif()
