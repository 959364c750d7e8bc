# SPDX-License-Identifier: Apache-2.0
halocline_add_test(dirac.wilson_clover_test SOURCES wilson_clover_test.cpp wilson_clover_ranks_test.cpp
                   LINK halocline::dirac PkgConfig::HWY ARGS --gtest_filter=-PublicFiles.* LABELS threads)
# Separate, so that missing files don't skip the others.
add_test(NAME dirac.wilson_clover_test.public_files COMMAND dirac_wilson_clover_test --gtest_filter=PublicFiles.*)
set_tests_properties(dirac.wilson_clover_test.public_files PROPERTIES
  TIMEOUT 300 LABELS reference-data SKIP_RETURN_CODE 77)
