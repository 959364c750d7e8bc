# SPDX-License-Identifier: Apache-2.0
halocline_add_test(apps.heatbath_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/generate_gauge_heatbath_test.cpp
                   LINK halocline_heatbath LABELS threads)
halocline_add_test(apps.generate_gauge_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/generate_gauge_test.cpp
                   LINK halocline::lattice nlohmann_json::nlohmann_json ZLIB::ZLIB)
target_include_directories(apps_generate_gauge_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/lattice) # openqcd_format.hpp
target_compile_definitions(apps_generate_gauge_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(apps_generate_gauge_test generate_gauge halocline-run)
