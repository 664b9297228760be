#include "data/forms_keys.h"

#include <string.h>

#include "base/status.h"

#define MESSAGES AH_KEYS_MESSAGES, "messages"
#define CONVERSATIONS AH_KEYS_CONVERSATIONS, "conversations"
#define CHATS AH_KEYS_CHATS, "messages, conversations"
#define ALPACA AH_KEYS_ALPACA, "alpaca"
#define ALPACA_DOLLY AH_KEYS_ALPACA | AH_KEYS_DOLLY, "alpaca, dolly"
#define DOLLY AH_KEYS_DOLLY, "dolly"
#define ORCA AH_KEYS_ORCA, "orca"
#define DOLLY_ORCA AH_KEYS_DOLLY | AH_KEYS_ORCA, "dolly, orca"
#define INSTRUCTIONS AH_KEYS_INSTRUCTIONS, "alpaca, dolly, orca"
#define PAIRS AH_KEYS_PAIRS, "pairs"
#define ANSWERS AH_KEYS_ANSWERS, "all with answers"
#define IDS AH_KEYS_IDS, "ids"
#define DOCUMENTS AH_KEYS_DOCUMENTS, "documents"
#define RECORDS AH_KEYS_RECORDS, "all"
#define TURNS AH_KEYS_TURNS, "a message"
#define READ AH_KEY_READ
#define MARK AH_KEY_MARK
#define REFUSED AH_KEY_REFUSED
#define PASSED AH_KEY_PASSED

const struct ah_form_key ah__form_keys[] = {
    {MESSAGES, "messages", READ, "list of messages", "OpenAI, TRL, ms-swift"},
    {CONVERSATIONS, "conversations", READ, "list of turns", "ShareGPT, LLaMA-Factory, axolotl"},
    {CONVERSATIONS, "conversation", READ, "the same", "ms-swift"},
    {ALPACA_DOLLY, "instruction", READ, "question", "Stanford Alpaca, Dolly"},
    {ALPACA, "output", READ, "answer", "Stanford Alpaca"},
    {ORCA, "question", READ, "question", "OpenOrca"},
    {ORCA, "query", READ, "the same", "ms-swift, MetaMath"},
    {DOLLY_ORCA, "response", READ, "answer", "Dolly, OpenOrca"},
    {ORCA, "answer", READ, "the same", "GSM8K"},
    {INSTRUCTIONS, "input", READ, "what the question is about", "Stanford Alpaca"},
    {INSTRUCTIONS, "context", READ, "the same", "Dolly"},
    {PAIRS, "prompt", READ, "text or list of messages", "TRL"},
    {PAIRS, "completion", READ, "answer", "TRL"},
    {PAIRS, "response", READ, "the same", "LLaMA-Factory"},
    {ANSWERS, "system", READ, "system prompt", "LLaMA-Factory, ms-swift"},
    {ANSWERS, "system_prompt", READ, "the same", "OpenOrca"},
    {ANSWERS, "history", READ, "list of earlier questions and answers", "LLaMA-Factory, ms-swift"},
    {ANSWERS, "tools", READ, "functions: a list, or JSON in a text", "OpenAI, TRL, LLaMA-Factory"},
    {ANSWERS, "functions", READ, "the same", "OpenAI, before tools"},
    {ANSWERS, "chat_template_kwargs", READ, "variables for the chat template", "TRL, SmolTalk2"},
    {ANSWERS, "label", MARK, "false: a bad answer, not learned", "TRL's and ms-swift's KTO"},
    {ANSWERS, "kto_tag", MARK, "the same", "LLaMA-Factory's KTO"},
    {ANSWERS, "chosen", REFUSED, "the better of two answers", "TRL's and LLaMA-Factory's DPO"},
    {ANSWERS, "rejected", REFUSED, "the worse of two answers", "TRL's and LLaMA-Factory's DPO"},
    {ANSWERS, "rejected_response", REFUSED, "the same", "ms-swift's DPO"},
    {ANSWERS, "rejected_messages", REFUSED, "the same", "ms-swift's DPO"},
    {CHATS, "add_generation_prompt", READ, "for `chat --render` alone", "transformers"},
    {IDS, "input_ids", READ, "tokens", "transformers, axolotl"},
    {IDS, "labels", MARK, "-100: not learned", "transformers, axolotl"},
    {IDS, "attention_mask", MARK, "0 or false: left out", "transformers, axolotl"},
    {IDS, "completion_mask", MARK, "0 or false: not learned", "TRL"},
    {IDS, "assistant_masks", MARK, "0 or false: not learned", "TRL"},
    {IDS, "token_type_ids", PASSED, "", "transformers"},
    {IDS, "position_ids", PASSED, "", "transformers"},
    {DOCUMENTS, "text", READ, "text", "C4, TRL"},
    {DOCUMENTS, "timestamp", PASSED, "", "C4"},
    {DOCUMENTS, "title", PASSED, "", "Wikipedia"},
    {DOCUMENTS, "meta", PASSED, "", "The Pile"},
    {ALPACA, "text", PASSED, "question and answer again", "Stanford Alpaca"},
    {DOLLY, "category", PASSED, "", "Dolly"},
    {RECORDS, "id", PASSED, "", "ShareGPT, OpenOrca"},
    {RECORDS, "source", PASSED, "", "Tulu"},
    {RECORDS, "url", PASSED, "", "C4"},
    {TURNS, "role", READ, "who speaks", "OpenAI"},
    {TURNS, "from", READ, "the same", "ShareGPT"},
    {TURNS, "content", READ, "what is said", "OpenAI"},
    {TURNS, "value", READ, "the same", "ShareGPT"},
    {TURNS, "human", READ, "question, in a turn with its answer", "ms-swift"},
    {TURNS, "assistant", READ, "and that answer", "ms-swift"},
    {TURNS, "tool_calls", READ, "calls of functions", "OpenAI"},
    {TURNS, "function_call", READ, "one of them", "OpenAI, before tools"},
    {TURNS, "reasoning_content", READ, "thoughts", "transformers"},
    {TURNS, "thinking", READ, "the same", "transformers"},
    {TURNS, "reasoning", READ, "the same", "transformers"},
    {TURNS, "name", PASSED, "for the template", "OpenAI"},
    {TURNS, "tool_call_id", PASSED, "for the template", "OpenAI"},
    {TURNS, "weight", MARK, "0: not learned", "OpenAI"},
    {TURNS, "train", MARK, "false: not learned", "axolotl, open-instruct"},
    {TURNS, "training", MARK, "the same", "axolotl"},
    {TURNS, "loss", MARK, "the same", "ms-swift"},
    {TURNS, "loss_weight", MARK, "0: not learned", "LLaMA-Factory v1"},
    {TURNS, "train_detail", REFUSED, "parts of a message that are not learned", "axolotl"},
};
const size_t ah__form_keys_count = AH_LENGTH(ah__form_keys);

const struct ah_form_key *ah__form_key_find(unsigned where, const char *key, size_t length)
{
    for (size_t i = 0; i < AH_LENGTH(ah__form_keys); i++)
        if (ah__form_keys[i].where & where && strlen(ah__form_keys[i].key) == length &&
            memcmp(ah__form_keys[i].key, key, length) == 0)
            return &ah__form_keys[i];
    return NULL;
}

const char *ah__form_key_word(enum ah_key_use use)
{
    static const char *const words[] = {[AH_KEY_READ] = "read",
                                        [AH_KEY_MARK] = "read, a mark",
                                        [AH_KEY_REFUSED] = "refused",
                                        [AH_KEY_PASSED] = "passed over"};
    return words[use];
}
