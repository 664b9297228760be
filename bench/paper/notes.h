/* The prose of summary.md and appendix.md. */
#ifndef AH_BENCH_PAPER_NOTES_H
#define AH_BENCH_PAPER_NOTES_H

extern const char *const paper_notes_summary; /* behind the table it opens with */
extern const char *const paper_notes_appendix;

#endif
