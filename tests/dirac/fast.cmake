# SPDX-License-Identifier: Apache-2.0
halocline_add_test(dirac.wilson_clover_test SOURCES wilson_clover_test.cpp LINK halocline::dirac PkgConfig::HWY)
