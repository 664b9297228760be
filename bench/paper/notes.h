/* The prose of summary.md. */
#ifndef AH_BENCH_PAPER_NOTES_H
#define AH_BENCH_PAPER_NOTES_H

extern const char *const paper_notes_opening;

#endif
