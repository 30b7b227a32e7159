# Clang and LLVM 19, linked statically into whatever uses the backend layer. Their headers are
# seen by src/backend/cpu/jit/clang only.
find_program(LLVM_CONFIG NAMES llvm-config-19 PATHS /usr/lib/llvm-19/bin)
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "llvm-config-19 not found: install llvm-19-dev and libclang-19-dev, or set OXYFUEL_WITH_LLVM=OFF")
endif()
function(oxyfuel_llvm_config result)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(OXYFUEL_LLVM_TARGET aarch64)
else()
  set(OXYFUEL_LLVM_TARGET x86)
endif()
oxyfuel_llvm_config(LLVM_INCLUDE_DIR --includedir)
oxyfuel_llvm_config(LLVM_LIBRARY_DIR --libdir)
oxyfuel_llvm_config(LLVM_LIBRARIES --link-static --libs ${OXYFUEL_LLVM_TARGET}codegen ${OXYFUEL_LLVM_TARGET}asmparser
  orcjit passes coverage lto frontendhlsl frontendopenmp frontenddriver frontendoffloading windowsdriver option)
separate_arguments(LLVM_LIBRARIES)
# Polly is a plug-in that nothing here uses.
list(FILTER LLVM_LIBRARIES EXCLUDE REGEX "LLVMExtensions|Polly")
list(TRANSFORM LLVM_LIBRARIES REPLACE "^-l" "${LLVM_LIBRARY_DIR}/lib")
list(TRANSFORM LLVM_LIBRARIES APPEND ".a")
set(CLANG_LIBRARIES CodeGen Frontend Driver Serialization Parse Sema Analysis Edit AST ASTMatchers Lex Basic Support
  APINotes Rewrite)
list(TRANSFORM CLANG_LIBRARIES PREPEND "${LLVM_LIBRARY_DIR}/libclang")
list(TRANSFORM CLANG_LIBRARIES APPEND ".a")

add_library(oxyfuel_llvm INTERFACE)
target_include_directories(oxyfuel_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIR})
# The compression libraries are linked statically as well: nothing has to be installed where the package runs.
find_library(ZLIB_STATIC libz.a REQUIRED)
find_library(ZSTD_STATIC libzstd.a REQUIRED)
target_link_libraries(oxyfuel_llvm INTERFACE -Wl,--start-group ${CLANG_LIBRARIES} ${LLVM_LIBRARIES} -Wl,--end-group
  ${ZSTD_STATIC} ${ZLIB_STATIC} rt dl m Threads::Threads)
target_link_options(oxyfuel_llvm INTERFACE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
