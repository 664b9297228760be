#include "dev/dev.h"

const char *const ah__lane_names[AH_LANE_COUNT] = {
    [AH_LANE_COMPUTE] = "compute", [AH_LANE_H2D] = "h2d",   [AH_LANE_D2H] = "d2h",
    [AH_LANE_HOST] = "host",       [AH_LANE_COMM] = "comm", [AH_LANE_DISK] = "disk",
};

const char *ah_lane_name(enum ah_lane lane)
{
    return (unsigned)lane < AH_LANE_COUNT ? ah__lane_names[lane] : "unknown lane";
}
