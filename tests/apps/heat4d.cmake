# SPDX-License-Identifier: Apache-2.0
include(HaloclineMpiTest) # finds the launchers
halocline_add_test(apps.heat4d_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/heat4d_test.cpp
                   LINK halocline::lattice nlohmann_json::nlohmann_json)
target_compile_definitions(apps_heat4d_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(apps_heat4d_test heat4d halocline-run)
foreach(mpi openmpi mpich)
  if(TARGET heat4d_mpi_${mpi})
    add_dependencies(apps_heat4d_test heat4d_mpi_${mpi})
  endif()
endforeach()
set_tests_properties(apps.heat4d_test PROPERTIES ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}" PROCESSORS 2)
