// SPDX-License-Identifier: Apache-2.0
// main() of the tests that have none of their own.
#include <halocline_test/run_tests.hpp>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return halocline_test::run_tests();
}
