#include "data/pack.h"

#include "base/alloc.h"

/* Sequences and examples in linked lists of indexes; -1 ends a list. */
struct packing {
    const struct ah_example *examples;
    int64_t from, to, seq;
    int64_t *by_places; /* [seq + 1] first example that needs so many places */
    int64_t *by_room;   /* [seq + 1] first sequence with so much room */
    int64_t *next_example, *next_sequence;
    int64_t *head, *tail; /* first and last member of each sequence */
    int64_t *room;        /* free places of each sequence */
    int64_t count;        /* number of sequences */
    struct ah_arena arena;
};

static int fill_new(struct ah_arena *arena, int64_t **out, int64_t count)
{
    AH_TRY(ah__arena_new(arena, out, (size_t)count, sizeof **out));
    for (int64_t i = 0; i < count; i++)
        (*out)[i] = -1;
    return AH_OK;
}

static int packing_init(struct packing *packing)
{
    int64_t examples = packing->to - packing->from;
    struct ah_arena *arena = &packing->arena;
    AH_TRY(fill_new(arena, &packing->by_places, packing->seq + 1));
    AH_TRY(fill_new(arena, &packing->by_room, packing->seq + 1));
    AH_TRY(fill_new(arena, &packing->next_example, examples));
    AH_TRY(fill_new(arena, &packing->next_sequence, examples));
    AH_TRY(fill_new(arena, &packing->head, examples));
    AH_TRY(fill_new(arena, &packing->tail, examples));
    return fill_new(arena, &packing->room, examples);
}

/* Sorts examples by length; starts with the last one, so that each list is in the order of the data. */
static void examples_sort(struct packing *packing)
{
    for (int64_t i = packing->to - packing->from - 1; i >= 0; i--) {
        int64_t places = packing->examples[packing->from + i].length - 1;
        packing->next_example[i] = packing->by_places[places];
        packing->by_places[places] = i;
    }
}

/* Takes the fullest sequence with room out of its list, else a new one. */
static int64_t sequence_take(struct packing *packing, int64_t places)
{
    for (int64_t room = places; room <= packing->seq; room++) {
        int64_t sequence = packing->by_room[room];
        if (sequence < 0)
            continue;
        packing->by_room[room] = packing->next_sequence[sequence];
        return sequence;
    }
    packing->room[packing->count] = packing->seq;
    return packing->count++;
}

static void example_put(struct packing *packing, int64_t example, int64_t places)
{
    int64_t sequence = sequence_take(packing, places), room = packing->room[sequence] -= places;
    packing->next_example[example] = -1;
    if (packing->head[sequence] < 0)
        packing->head[sequence] = example;
    else
        packing->next_example[packing->tail[sequence]] = example;
    packing->tail[sequence] = example;
    packing->next_sequence[sequence] = packing->by_room[room];
    packing->by_room[room] = sequence;
}

static int result_fill(struct ah_pack *out, const struct packing *packing)
{
    int64_t members = 0;
    AH_TRY(ah__new(&out->first, (size_t)packing->count + 1, sizeof *out->first));
    AH_TRY(ah__new(&out->members, (size_t)(packing->to - packing->from), sizeof *out->members));
    out->count = packing->count;
    for (int64_t s = 0; s < packing->count; s++) {
        out->first[s] = members;
        for (int64_t i = packing->head[s]; i >= 0; i = packing->next_example[i])
            out->members[members++] = packing->from + i;
    }
    out->first[packing->count] = members;
    return AH_OK;
}

static int pack(struct ah_pack *out, struct packing *packing)
{
    AH_TRY(packing_init(packing));
    examples_sort(packing);
    for (int64_t places = packing->seq; places > 0; places--)
        for (int64_t i = packing->by_places[places], next; i >= 0; i = next) {
            next = packing->next_example[i];
            example_put(packing, i, places);
        }
    return result_fill(out, packing);
}

int ah__pack_make(struct ah_pack *out, const struct ah_example *examples, int64_t from, int64_t to, int64_t seq)
{
    struct packing packing = {.examples = examples, .from = from, .to = to, .seq = seq};
    *out = (struct ah_pack){0};
    int status = pack(out, &packing);
    ah__arena_free(&packing.arena);
    return status;
}

void ah__pack_free(struct ah_pack *pack)
{
    ah__free(pack->first);
    ah__free(pack->members);
    *pack = (struct ah_pack){0};
}
