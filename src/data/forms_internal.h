/* Shared by the files of forms: forms.c finds a record's form and reads texts and ids; forms_chat.c reads
 * conversations, forms_turns.c one message. */
#ifndef AH_DATA_FORMS_INTERNAL_H
#define AH_DATA_FORMS_INTERNAL_H

#include "data/forms.h"

enum { AH_FORM_FOUND_BYTES = 48 };

/* A record. `json` is the tree of the members that are read; its path says where the record is. */
struct ah_form_record {
    struct ah_json json;
    struct ah_form_store *store;
    struct ah_document *out;
};

/* Returns a member, or null. */
cJSON *ah__form_member(const struct ah_form_record *record, const char *key);
/* Gets a required text; AH_EINPUT. */
int ah__form_text(const char **out, size_t *length, const struct ah_form_record *record, const char *key);
/* Gets the text of the first of two keys that has one, "" if neither has. Another text in the second is noted. */
int ah__form_text_of(const char **out, struct ah_form_record *record, const char *key, const char *other);
/* Note a member that is not read. */
int ah__form_extra_add(struct ah_form_record *record, const char *key, size_t key_length, const char *value,
                       size_t value_length);
int ah__form_unread(struct ah_form_record *record, const char *key);
/* Returns true if a value is present and not null, "", [] or {}. */
bool ah__form_is_filled(const cJSON *value);
/* Gets a required list; AH_EINPUT. */
int ah__form_any_list(cJSON **out, const struct ah_form_record *record, const char *key);
/* Gets a required list that is not empty. */
int ah__form_list(cJSON **out, const struct ah_form_record *record, const char *key);
/* Describes an unexpected value in few bytes; "nothing" for null. */
const char *ah__form_found(char text[AH_FORM_FOUND_BYTES], const cJSON *value);

/* Turns the items of record[key] into messages with role, content and tool_calls, whatever their own words. AH_EINPUT:
 * an item is not a turn. */
int ah__form_turns(struct ah_form_record *record, const char *key, cJSON *list);
/* Appends a message. AH_ENOMEM. */
int ah__form_message_add(cJSON *list, const char *role, const char *content);
/* Moves all items of a list to the end of another. */
void ah__form_items_move(cJSON *to, cJSON *from);
/* Sets out->bad if the record marks its answer as bad. */
int ah__form_marks(struct ah_document *out, struct ah_form_record *record);

/* Readers of forms: make a document of a record's members. AH_EINPUT, AH_ENOMEM. */
int ah__form_messages(struct ah_document *out, struct ah_form_record *record);
int ah__form_conversations(struct ah_document *out, struct ah_form_record *record);
int ah__form_alpaca(struct ah_document *out, struct ah_form_record *record);
int ah__form_dolly(struct ah_document *out, struct ah_form_record *record);
int ah__form_orca(struct ah_document *out, struct ah_form_record *record);
/* Reads lists of messages in `prompt` and in `key` as one conversation, whose first part is given. */
int ah__form_message_lists(struct ah_document *out, struct ah_form_record *record, const char *key);

#endif
