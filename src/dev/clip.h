/* Clipping by the global norm, with the same doubles on every device: g' = g * min(1, limit / (norm + 1e-6)), as
 * PyTorch's clip_grad_norm_ does. A norm that is not finite gives NaN, with which updates change nothing. */
#ifndef AH_DEV_CLIP_H
#define AH_DEV_CLIP_H

#include <math.h>

/* Qualifiers of the functions below, which a device's compiler may need. */
#ifndef AH_CLIP_FUNCTION
#define AH_CLIP_FUNCTION static inline
#endif

/* Returns the global norm from squared norms, summed in this order. */
AH_CLIP_FUNCTION double ah__clip_norm(const double *squares, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += squares[i];
    return sqrt(sum);
}

AH_CLIP_FUNCTION float ah__clip_scale(double norm, double limit)
{
    if (!isfinite(norm))
        return NAN;
    double ratio = limit / (norm + 1e-6);
    return ratio < 1 ? (float)ratio : 1.0F;
}

#endif
