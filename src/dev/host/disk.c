#include "dev/host/disk.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

enum { REQUEST = 4 << 20, MOST_FOLDERS = 64, THREADS = 8, MESSAGE_BYTES = 512 };

/* A call of read or write. */
struct transfer {
    char *memory;
    int64_t offset, end, first; /* bytes of the scratch space, and number of the first request */
    bool writes;
};

struct ah_disk {
    int64_t bytes;
    int files, started;
    struct ah_disk_file *file;
    pthread_t *thread;
    char note[MESSAGE_BYTES];
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more, done;
    bool stop;
    struct transfer transfer;
    int64_t next, finished, count; /* requests taken, done, and of the call */
    int status;                    /* of the request that failed first */
    char message[MESSAGE_BYTES];
};

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Does request `index` of a call, which lies in one stripe. */
static int request_run(const struct ah_disk *disk, const struct transfer *transfer, int64_t index)
{
    int64_t stripe = transfer->first + index, from = stripe * REQUEST, to = from + REQUEST;
    from = from > transfer->offset ? from : transfer->offset;
    to = to < transfer->end ? to : transfer->end;
    int64_t at = stripe / disk->files * REQUEST + from % REQUEST;
    return ah__disk_file_move(&disk->file[stripe % disk->files], transfer->memory + (from - transfer->offset), at,
                              to - from, transfer->writes);
}

/* Takes requests of the current call until none is left. The lock is held, but while a request runs. */
static void requests_take(struct ah_disk *disk)
{
    while (disk->next < disk->count) {
        int64_t index = disk->next++;
        int status = disk->status; /* of a failed call, requests are left out */
        if (status == AH_OK) {
            struct transfer transfer = disk->transfer;
            pthread_mutex_unlock(&disk->lock);
            status = request_run(disk, &transfer, index);
            pthread_mutex_lock(&disk->lock);
            if (status != AH_OK && disk->status == AH_OK) {
                disk->status = status;
                snprintf(disk->message, sizeof disk->message, "%s", ah_error());
            }
        }
        if (++disk->finished == disk->count)
            pthread_cond_signal(&disk->done);
    }
}

static void *thread_main(void *argument)
{
    struct ah_disk *disk = argument;
    pthread_mutex_lock(&disk->lock);
    while (!disk->stop) {
        requests_take(disk);
        if (!disk->stop)
            pthread_cond_wait(&disk->more, &disk->lock);
    }
    pthread_mutex_unlock(&disk->lock);
    return NULL;
}

static int transfer_check(const struct ah_disk *disk, const void *memory, int64_t offset, int64_t bytes)
{
    if (offset >= 0 && bytes >= 0 && offset <= disk->bytes && bytes <= disk->bytes - offset &&
        (offset | bytes) % AH_DISK_ALIGN == 0 && (uintptr_t)memory % AH_DISK_ALIGN == 0)
        return AH_OK;
    return ah__fail(AH_EINTERNAL,
                    "scratch space: found %lld bytes at %lld, memory at %p, expected multiples of %d within %lld bytes",
                    (long long)bytes, (long long)offset, memory, AH_DISK_ALIGN, (long long)disk->bytes);
}

/* Runs a call on the caller and the disk's threads. */
static int transfer_run(struct ah_disk *disk, char *memory, int64_t offset, int64_t bytes, bool writes)
{
    AH_TRY(transfer_check(disk, memory, offset, bytes));
    if (!bytes)
        return AH_OK;
    int64_t first = offset / REQUEST, end = offset + bytes;
    pthread_mutex_lock(&disk->lock);
    disk->transfer = (struct transfer){memory, offset, end, first, writes};
    disk->status = AH_OK;
    disk->next = disk->finished = 0;
    disk->count = (end - 1) / REQUEST - first + 1;
    for (int64_t i = 1; i < disk->count && i <= disk->started; i++)
        pthread_cond_signal(&disk->more);
    requests_take(disk);
    while (disk->finished < disk->count)
        pthread_cond_wait(&disk->done, &disk->lock);
    int status = disk->status;
    pthread_mutex_unlock(&disk->lock);
    return status == AH_OK ? AH_OK : ah__fail(status, "%s", disk->message);
}

int ah__disk_read(struct ah_disk *disk, void *to, int64_t offset, int64_t bytes)
{
    return transfer_run(disk, to, offset, bytes, false);
}

int ah__disk_write(struct ah_disk *disk, int64_t offset, const void *from, int64_t bytes)
{
    return transfer_run(disk, (char *)(uintptr_t)from, offset, bytes, true);
}

const char *ah__disk_note(const struct ah_disk *disk)
{
    return disk->note;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static int folders_find(struct ah_disk *disk, const char *folders)
{
    int count = 1;
    for (const char *at = folders; (at = strchr(at, ',')) != NULL; at++)
        count++;
    if (count > MOST_FOLDERS)
        return ah__fail(AH_EINPUT, "found %d folders for scratch space, expected at most %d", count, MOST_FOLDERS);
    AH_TRY(ah__new(&disk->file, (size_t)count, sizeof *disk->file));
    for (const char *at = folders; disk->files < count;) {
        size_t length = strcspn(at, ",");
        if (!length)
            return ah__fail(AH_EINPUT, "found \"%s\", expected folders for scratch space, separated by commas",
                            folders);
        AH_TRY(ah__disk_file_init(&disk->file[disk->files++], at, length));
        at += length + 1;
    }
    return AH_OK;
}

static void folders_fini(struct ah_disk *disk)
{
    for (int i = 0; i < disk->files; i++)
        ah__disk_file_fini(&disk->file[i]);
    ah__free(disk->file);
}

/* Sums up what the files on the same file system take, and how many they are. */
static int sharers(int64_t *bytes, const struct ah_disk *disk, const struct ah_disk_file *file)
{
    int count = 0;
    *bytes = 0;
    for (int i = 0; i < disk->files; i++)
        if (disk->file[i].drive == file->drive) {
            *bytes += disk->file[i].bytes;
            count++;
        }
    return count;
}

/* Checks free bytes before any are taken: a drive that fills up on the way takes long to find that. */
static int room_check(const struct ah_disk *disk)
{
    for (int i = 0; i < disk->files; i++) {
        int64_t expected;
        (void)sharers(&expected, disk, &disk->file[i]);
        AH_TRY(ah__disk_file_room(&disk->file[i], expected));
    }
    return AH_OK;
}

static void note_write(struct ah_disk *disk, const struct ah_disk_file *file)
{
    if (disk->note[0])
        return;
    if (ah__disk_file_in_memory(file))
        snprintf(disk->note, sizeof disk->note, "%s is in memory, not on a drive: what is put there takes host memory",
                 file->folder);
    else if (file->ordinary)
        snprintf(disk->note, sizeof disk->note,
                 "%s: the file system refuses direct I/O; ordinary I/O is used, which is slower", file->folder);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Divides the stripes among the files. */
static void bytes_divide(struct ah_disk *disk, int64_t bytes)
{
    int64_t whole = bytes / REQUEST, rest = bytes % REQUEST;
    disk->bytes = bytes;
    for (int i = 0; i < disk->files; i++) {
        int64_t stripes = whole / disk->files + (i < whole % disk->files);
        disk->file[i].bytes = stripes * REQUEST + (i == whole % disk->files ? rest : 0);
    }
}

static int files_open(struct ah_disk *disk, const char *folders, int64_t bytes)
{
    AH_TRY(folders_find(disk, folders));
    bytes_divide(disk, bytes);
    for (int i = 0; i < disk->files; i++)
        AH_TRY(ah__disk_file_open(&disk->file[i]));
    AH_TRY(room_check(disk));
    for (int i = 0; i < disk->files; i++) {
        AH_TRY(ah__disk_file_allocate(&disk->file[i]));
        note_write(disk, &disk->file[i]);
    }
    return AH_OK;
}

static int threads_start(struct ah_disk *disk, int threads)
{
    AH_TRY(ah__new(&disk->thread, (size_t)threads, sizeof *disk->thread));
    for (; disk->started < threads - 1; disk->started++) {
        int error = pthread_create(&disk->thread[disk->started], NULL, thread_main, disk);
        if (error)
            return ah__fail(AH_ENOMEM, "cannot start thread %d of %d of the scratch space: %s", disk->started + 2,
                            threads, strerror(error));
    }
    return AH_OK;
}

static struct ah_disk *disk_init(struct ah_disk *disk)
{
    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->more, NULL);
    pthread_cond_init(&disk->done, NULL);
    return disk;
}

int ah__disk_open(struct ah_disk **out, const char *folders, int64_t bytes, int threads)
{
    struct ah_disk *disk;
    if (bytes < 0 || bytes % AH_DISK_ALIGN || threads < 0)
        return ah__fail(AH_EINTERNAL, "scratch space of %lld bytes and %d threads, expected a multiple of %d",
                        (long long)bytes, threads, AH_DISK_ALIGN);
    AH_TRY(ah__new(&disk, 1, sizeof *disk));
    disk_init(disk);
    int status = files_open(disk, folders, bytes);
    if (status == AH_OK)
        status = threads_start(disk, threads ? threads : THREADS);
    if (status != AH_OK) {
        ah__disk_close(disk);
        return status;
    }
    *out = disk;
    return AH_OK;
}

void ah__disk_close(struct ah_disk *disk)
{
    if (!disk)
        return;
    pthread_mutex_lock(&disk->lock);
    disk->stop = true;
    pthread_cond_broadcast(&disk->more);
    pthread_mutex_unlock(&disk->lock);
    for (int i = 0; i < disk->started; i++)
        pthread_join(disk->thread[i], NULL);
    pthread_cond_destroy(&disk->more);
    pthread_cond_destroy(&disk->done);
    pthread_mutex_destroy(&disk->lock);
    folders_fini(disk);
    ah__free(disk->thread);
    ah__free(disk);
}

int ah__disk_free_bytes(int64_t *bytes, const char *folders)
{
    struct ah_disk disk = {.files = 0};
    int64_t least = INT64_MAX, unused;
    int status = folders_find(&disk, folders);
    for (int i = 0; i < disk.files && status == AH_OK; i++) {
        int64_t found = 0;
        status = ah__disk_file_free(&found, &disk.file[i]);
        int64_t share = (found - found / 100) / sharers(&unused, &disk, &disk.file[i]);
        least = share < least ? share : least;
    }
    if (status == AH_OK)
        *bytes = least / AH_DISK_ALIGN * AH_DISK_ALIGN * disk.files;
    folders_fini(&disk);
    return status;
}
