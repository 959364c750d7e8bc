# SPDX-License-Identifier: Apache-2.0
halocline_add_test(dirac.reference_test SOURCES reference_test.cpp LINK halocline::dirac LABELS threads)
halocline_add_test(dirac.spinor_field_test SOURCES spinor_field_test.cpp LINK halocline::dirac LABELS threads)
halocline_add_test(dirac.gauge_configuration_test SOURCES gauge_configuration_test.cpp LINK halocline::dirac ZLIB::ZLIB
                   LABELS threads)
# The same operator on public configurations; skipped where they are missing.
halocline_add_test(dirac.reference_data_test SOURCES reference_data_test.cpp LINK halocline::dirac
                   LABELS reference-data)
