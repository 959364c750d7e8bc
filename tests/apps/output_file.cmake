# SPDX-License-Identifier: Apache-2.0
halocline_add_test(apps.output_file_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/output_file_test.cpp
                   LINK halocline_app_support)
