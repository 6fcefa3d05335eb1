# tt_module(NAME SOURCES a.c b.c PUBLIC tt::core PRIVATE pkg::yaml)
# One folder, one static library: include/ is PUBLIC, src/ is PRIVATE. The arrows between folders are exactly the
# PUBLIC and PRIVATE lists: a header of a folder that is not linked is not found, and a folder's tests link it alone.
function(tt_module name)
    cmake_parse_arguments(M "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
    list(TRANSFORM M_SOURCES PREPEND src/)
    add_library(tt_${name} STATIC ${M_SOURCES})
    add_library(tt::${name} ALIAS tt_${name})
    target_include_directories(tt_${name} PUBLIC include PRIVATE src)
    target_link_libraries(tt_${name} PUBLIC tt_options ${M_PUBLIC} PRIVATE ${M_PRIVATE})
endfunction()

# tt_test(MODULE NAME [LABELS ...] [TIMEOUT s] [LINK ...]): test/NAME.c, linked with its module (and LINK), run by CTest.
# Tests may see the module's private headers.
function(tt_test module name)
    cmake_parse_arguments(T "" "TIMEOUT" "LABELS;LINK" ${ARGN})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 120)
    endif()
    if(TT_SANITIZE STREQUAL "thread")
        math(EXPR T_TIMEOUT "4 * ${T_TIMEOUT}") # it makes everything ten times slower
    endif()
    add_executable(${name} test/${name}.c)
    target_link_libraries(${name} PRIVATE tt::${module} pkg::cmocka ${T_LINK})
    target_include_directories(${name} PRIVATE src)
    target_compile_definitions(${name} PRIVATE TT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test-bin")
    add_test(NAME ${module}.${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${module}.${name} PROPERTIES LABELS "${module};${T_LABELS}" TIMEOUT ${T_TIMEOUT}
        SKIP_RETURN_CODE 77)
endfunction()
