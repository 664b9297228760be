#include "paper/notes.h"

const char *const paper_notes_opening = "# x\n\n";
const char *const paper_notes_causes = "x\n";
