/* Loads and stores elements of one compute dtype: floats, or bf16 if AH_BF16_ELEMENTS is defined. Part of
 * kernels_isa.h. It has no guard against a second inclusion, since each file that uses it includes it once. */
#include "dev/host/simd.h"
#include "dev/host/simd_sum.h"

/* The type of parameters, activations and their gradients. ROUNDED: a store loses bits, so sums are not kept in
 * memory. */
#ifdef AH_BF16_ELEMENTS
enum { ROUNDED = 1 };
typedef uint16_t element;
#define E_NAME(name) name##_bf16
#else
enum { ROUNDED = 0 };
typedef float element;
#define E_NAME(name) name
#endif

AH_INLINE v16 e_load(const element *p)
{
    return E_NAME(v_load)(p);
}
AH_INLINE v16 e_load_first(const element *p, int n)
{
    return E_NAME(v_load_first)(p, n);
}
AH_INLINE v16 e_load_most(const element *p, int64_t n)
{
    return E_NAME(v_load_most)(p, n);
}
AH_INLINE void e_store(element *p, v16 a)
{
    E_NAME(v_store)(p, a);
}
AH_INLINE void e_store_first(element *p, v16 a, int n)
{
    E_NAME(v_store_first)(p, a, n);
}
AH_INLINE void e_store_most(element *p, v16 a, int64_t n)
{
    E_NAME(v_store_most)(p, a, n);
}
/* Returns cap * tanh(x / cap). */
AH_INLINE v16 v_soft_cap(v16 x, float cap)
{
    return v_mul(v_set(cap), v_tanh(v_mul(x, v_set(1.0F / cap))));
}
AH_INLINE float e_one(const element *p)
{
    float lane[LANES];
    v_store(lane, e_load_first(p, 1));
    return lane[0];
}
