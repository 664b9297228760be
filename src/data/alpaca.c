#include "data/alpaca.h"

#include <string.h>

/* The prompt that Stanford Alpaca published (train.py, PROMPT_DICT), with which models that know this layout were
 * trained. */
static const char first_with_input[] = "Below is an instruction that describes a task, paired with an input that "
                                       "provides further context. Write a response that appropriately completes the "
                                       "request.";
static const char first_without[] =
    "Below is an instruction that describes a task. Write a response that appropriately "
    "completes the request.";

static void part_add(struct ah_buf *to, const char *heading, const char *text)
{
    ah__buf_add(to, "### ", 4);
    ah__buf_add(to, heading, strlen(heading));
    ah__buf_add(to, ":\n", 2);
    ah__buf_add(to, text, strlen(text));
    ah__buf_add(to, "\n\n", 2);
}

static void response_add(struct ah_buf *to)
{
    ah__buf_add(to, "### Response:", 13);
}

void ah__alpaca_layout(struct ah_buf *to, const struct ah_alpaca *alpaca)
{
    const char *first = *alpaca->system ? alpaca->system : *alpaca->input ? first_with_input : first_without;
    ah__buf_add(to, first, strlen(first));
    ah__buf_add(to, "\n\n", 2);
    for (const cJSON *turn = alpaca->history ? alpaca->history->child : NULL; turn; turn = turn->next) {
        const char *answer = turn->child->next->valuestring;
        part_add(to, "Instruction", turn->child->valuestring);
        response_add(to);
        ah__buf_add(to, answer, strlen(answer));
        ah__buf_add(to, "\n\n", 2);
    }
    part_add(to, "Instruction", alpaca->instruction);
    if (*alpaca->input)
        part_add(to, "Input", alpaca->input);
    response_add(to);
}
