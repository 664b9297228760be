# Counts the cases in a ctest log: prints "PASSED FAILED". A case is a line "ok NAME" or "not ok NAME" of ah_tests or a
# script. A test that failed without any such line (a crash, a time-out) counts as one failure.
/^Output:$/ { failures = 0 }
/^ok / { passed++ }
/^not ok / { failures++ }
/^Test Failed\.$/ { failed += failures ? failures : 1 }
END { print passed + 0, failed + 0 }
