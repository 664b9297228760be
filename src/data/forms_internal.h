/* What the files of forms share: forms.c finds a record's form and reads texts and ids; forms_chat.c reads
 * conversations, forms_turns.c one message. */
#ifndef AH_DATA_FORMS_INTERNAL_H
#define AH_DATA_FORMS_INTERNAL_H

#include "data/forms.h"

enum { AH_FORM_FOUND_BYTES = 48 };

/* The wanted members of a record. `json` is their tree; its path says where the record is. */
struct ah_form_record {
    struct ah_json json;
    struct ah_form_store *store;
    struct ah_document *out;
};

/* A member; null: there is none. */
cJSON *ah__form_member(const struct ah_form_record *record, const char *key);
/* A text that must be there; AH_EINPUT. */
int ah__form_text(const char **out, size_t *length, const struct ah_form_record *record, const char *key);
/* "" where it is missing or null. */
int ah__form_text_or_none(const char **out, const struct ah_form_record *record, const char *key);
/* The first of two keys that has a text, "" if none has. Another text in the second is noted. */
int ah__form_text_of(const char **out, struct ah_form_record *record, const char *key, const char *other);
/* Notes a member that is not read. */
int ah__form_extra_add(struct ah_form_record *record, const char *key, size_t key_length, const char *value,
                       size_t value_length);
int ah__form_unread(struct ah_form_record *record, const char *key);
/* Whether it is there and not null, "", [] or {}. */
bool ah__form_is_filled(const cJSON *value);
/* A list that must be there; AH_EINPUT. */
int ah__form_any_list(cJSON **out, const struct ah_form_record *record, const char *key);
/* The same, and not empty. */
int ah__form_list(cJSON **out, const struct ah_form_record *record, const char *key);
/* What stands where something else was expected, in few bytes; null: nothing does. */
const char *ah__form_found(char text[AH_FORM_FOUND_BYTES], const cJSON *value);

/* A part of list[index], which is `item`, or, where it has no name, the whole. AH_EINPUT. */
int ah__form_message_fail(const struct ah_form_record *record, const char *key, int index, const cJSON *item,
                          const char *part, const char *expected);
/* Makes the turns of record[key] messages with role, content and tool_calls, whatever words they have for them.
 * AH_EINPUT: one is none. */
int ah__form_turns(struct ah_form_record *record, const char *key, cJSON *list);
/* Appends a message. AH_ENOMEM. */
int ah__form_message_add(cJSON *list, const char *role, const char *content);
/* Moves all items of a list behind those of another. */
void ah__form_items_move(cJSON *to, cJSON *from);
/* Whether the record says that its answer is a bad one. */
int ah__form_marks(struct ah_document *out, struct ah_form_record *record);

/* Readers of forms: the document of a record's members. AH_EINPUT, AH_ENOMEM. */
int ah__form_messages(struct ah_document *out, struct ah_form_record *record);
int ah__form_conversations(struct ah_document *out, struct ah_form_record *record);
int ah__form_alpaca(struct ah_document *out, struct ah_form_record *record);
int ah__form_dolly(struct ah_document *out, struct ah_form_record *record);
int ah__form_orca(struct ah_document *out, struct ah_form_record *record);
/* Of lists of messages in `prompt` and in `key`: one conversation, whose first part is given. */
int ah__form_message_lists(struct ah_document *out, struct ah_form_record *record, const char *key);

#endif
