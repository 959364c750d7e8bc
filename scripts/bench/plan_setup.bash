# what making a halo plan costs, on one rank
programs=(bench_plan_setup)
packages=bench
quickest=()

run() { exec "$bin/bench_plan_setup" "${options[@]}"; }
