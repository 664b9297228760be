# Counts the cases in a ctest log: prints "PASSED FAILED". A case is a line "[       OK ] NAME" or "[  FAILED  ] NAME"
# of cmocka, or "ok NAME" or "not ok NAME" of a script. A test that failed without any such line (a crash, a time-out)
# counts as one failure.
/^Output:$/ { failures = 0; summary = 0 }
# cmocka repeats the failed cases after "[==========] N test(s) run."
/^\[==========\]/ { summary = / run\.$/ }
/^\[       OK \] / || /^ok / { passed++ }
/^\[  (FAILED |ERROR  ) \] / && $4 != "---" && !summary || /^not ok / { failures++ }
/^Test Failed\.$/ { failed += failures ? failures : 1 }
END { print passed + 0, failed + 0 }
