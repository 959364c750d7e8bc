# SPDX-License-Identifier: Apache-2.0
# The library does not depend on OpenMP; these tests drive its plans from parallel regions.
find_package(OpenMP COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  halocline_add_test(halo.team_test SOURCES team_test.cpp
    LINK halocline::halo OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS} SEES halo)
endif()
halocline_add_test(halo.team_threads_test SOURCES team_threads_test.cpp LINK halocline::halo LABELS threads)
if(LIBFABRIC_FOUND)
  halocline_add_test(halo.team_over_ofi_test SOURCES team_over_ofi_test.cpp LINK halocline::halo RANKS 2 LABELS ofi threads)
endif()
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} upper)
  if(NOT TARGET halocline_use_${mpi} OR NOT HALOCLINE_MPIRUN_${upper})
    continue()
  endif()
  set(program halo_team_over_mpi_test_${mpi})
  add_executable(${program} team_over_mpi_test.cpp)
  target_link_libraries(${program} PRIVATE halocline::halo halocline_use_${mpi} GTest::gtest halocline_warnings)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests CXX_EXTENSIONS OFF
    ENABLE_EXPORTS ON) # so that the module calls the functions that this program replaces
  set(test halo.team_over_mpi_test.${mpi}.r2)
  add_test(NAME ${test} COMMAND ${HALOCLINE_MPIRUN_${upper}} -n 2 $<TARGET_FILE:${program}>)
  set_tests_properties(${test} PROPERTIES TIMEOUT 300 LABELS mpi PROCESSORS 2
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
endforeach()
