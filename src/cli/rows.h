/* Rows of session/options.def inside a table of struct ah_arg. Takes AH_OF(train, plan, profile, simulate, fit,
 * inspect), which selects the command's own of six bits, and AH_AT(field), an offset in its struct. */
#define AH_DEFAULT(value) .initial = #value,
#define AH_SILENT(value)
#define AH_OPEN
#define AH_RANGE(low, high) .min = low, .max = high,
#define AH_WORDS(list) .words = list,
#define AH_ANY
#define AH_ARG_PATH AH_ARG_TEXT
#define AH_ARG_PATHS AH_ARG_TEXT
#define AH_ROW_0(...)
#define AH_ROW_1(name_, kind_, group_, at_, meta_, help_, ...)                                                         \
    {name_, kind_, at_, meta_, .help = help_, .group = group_, __VA_ARGS__},
#define AH_ROW(bit) AH_ROW_(bit)
#define AH_ROW_(bit) AH_ROW_##bit
#define AH_OPTION(field, name, kind, group, users, meta, default_, limits, resume, stored, help)                       \
    AH_ROW(AH_OF users)(name, AH_ARG_##kind, group, AH_AT(field), meta, help, default_ limits)
#include "session/options.def"
