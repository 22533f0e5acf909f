// The header in C++: both spellings of a descriptor.
#include <vipl.h>

static_assert(sizeof(VIP_DESCRIPTOR) == 64 && sizeof(VIP_CONTROL_SEGMENT) == 32, "layout");
static_assert(sizeof(VIP_DESCRIPTOR_SEGMENT) == 16 && sizeof(VIP_PVOID64) == 8, "layout");

int main() {
    VIP_DESCRIPTOR d = {};
    d.CS.SegCount = 1;
    d.DS[0].Local.Length = 4;
    VIP_NIC_HANDLE nic = nullptr;
    if (d.Control.SegCount != 1 || d.Data[0].Length != 4 || VipOpenNic("nic0", &nic) != VIP_SUCCESS)
        return 1;
    return VipCloseNic(nic) == VIP_SUCCESS ? 0 : 1;
}
