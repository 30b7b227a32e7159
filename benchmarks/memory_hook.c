// Counts the bytes of live large blocks of the C heap, preloaded into a benchmark's process.
//
// Resident memory would count what a compiler has freed but the heap has kept, and torch's own counters miss what
// libraries allocate. Tensors, packed weights and arenas are all large blocks, whoever allocates them.
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { LARGE = 64 * 1024 };  // bytes

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static atomic_llong live, peak;

static void grow(void* block) {
  if (block == NULL) return;
  size_t size = malloc_usable_size(block);
  if (size < LARGE) return;
  long long now = atomic_fetch_add(&live, (long long)size) + (long long)size;
  long long seen = atomic_load(&peak);
  while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now)) {
  }
}

static void shrink(void* block) {
  if (block == NULL) return;
  size_t size = malloc_usable_size(block);
  if (size >= LARGE) atomic_fetch_sub(&live, (long long)size);
}

long long large_bytes_live(void) { return atomic_load(&live); }
long long large_bytes_peak(void) { return atomic_load(&peak); }
void large_bytes_reset_peak(void) { atomic_store(&peak, atomic_load(&live)); }

void* malloc(size_t size) {
  void* block = __libc_malloc(size);
  grow(block);
  return block;
}
void* calloc(size_t count, size_t size) {
  void* block = __libc_calloc(count, size);
  grow(block);
  return block;
}
void* realloc(void* old, size_t size) {
  size_t before = old == NULL ? 0 : malloc_usable_size(old);
  void* block = __libc_realloc(old, size);
  if (block == NULL && size != 0) return NULL;
  if (before >= LARGE) atomic_fetch_sub(&live, (long long)before);
  grow(block);
  return block;
}
void* memalign(size_t alignment, size_t size) {
  void* block = __libc_memalign(alignment, size);
  grow(block);
  return block;
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* block = memalign(alignment, size);
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}
void free(void* block) {
  shrink(block);
  __libc_free(block);
}
