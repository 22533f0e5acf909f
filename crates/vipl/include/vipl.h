/*
 * vipl.h - the Virtual Interface Provider Library, VIPL 1.0.
 *
 * Link with -lvipl. The manual page vipl(3) tells what each call does; the calls that begin with VipExt are
 * extensions of this provider.
 */
#ifndef VIPL_H
#define VIPL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
typedef uint64_t VIP_UINT64;
typedef VIP_PVOID VIP_QOS;
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE;
typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_TRUE 1
#define VIP_FALSE 0
#define VIP_INFINITE (~0UL)

#define VIP_SERVICE_UNRELIABLE 1
#define VIP_SERVICE_RELIABLE_DELIVERY 2
#define VIP_SERVICE_RELIABLE_RECEPTION 4

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef union {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
} VIP_PVOID64;

typedef struct {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1]; /* the host address, then the discriminator */
} VIP_NET_ADDRESS;

/* Descriptors */

#define VIP_DESCRIPTOR_ALIGNMENT 64

typedef struct {
    VIP_PVOID64 Next;
    VIP_MEM_HANDLE NextHandle;
    VIP_UINT16 SegCount;
    VIP_UINT16 Control;
    VIP_UINT32 Reserved;
    VIP_UINT32 ImmediateData;
    VIP_UINT32 Length;
    VIP_UINT32 Status;
} VIP_CONTROL_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

#if defined(__GNUC__) || defined(__clang__)
#define VIP_ANONYMOUS __extension__
#define VIP_ALIGNED __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)))
#else
#define VIP_ANONYMOUS
#define VIP_ALIGNED
#endif

/* Some programs write Local.Data and Local.Length, others Data and Length. */
typedef union {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
    VIP_ANONYMOUS struct {
        VIP_PVOID64 Data;
        VIP_MEM_HANDLE Handle;
        VIP_UINT32 Length;
    };
} VIP_DESCRIPTOR_SEGMENT;

/* Some programs write CS and DS, others Control and Data. More segments may follow in memory. */
typedef struct VIP_ALIGNED {
    VIP_ANONYMOUS union {
        VIP_CONTROL_SEGMENT CS;
        VIP_CONTROL_SEGMENT Control;
    };
    VIP_ANONYMOUS union {
        VIP_DESCRIPTOR_SEGMENT DS[2];
        VIP_DESCRIPTOR_SEGMENT Data[2];
    };
} VIP_DESCRIPTOR;

#define VIP_CONTROL_OP_SENDRECV 0
#define VIP_CONTROL_OP_RDMAWRITE 1
#define VIP_CONTROL_OP_RDMAREAD 2
#define VIP_CONTROL_OP_RESERVED 3
#define VIP_CONTROL_OP_MASK 3
#define VIP_CONTROL_IMMEDIATE 4
#define VIP_CONTROL_QFENCE 8
#define VIP_CONTROL_RESERVED 0xFFF0

#define VIP_STATUS_DONE 0x1
#define VIP_STATUS_FORMAT_ERROR 0x2
#define VIP_STATUS_PROTECTION_ERROR 0x4
#define VIP_STATUS_LENGTH_ERROR 0x8
#define VIP_STATUS_PARTIAL_ERROR 0x10
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x20
#define VIP_STATUS_TRANSPORT_ERROR 0x40
#define VIP_STATUS_RDMA_PROT_ERROR 0x80
#define VIP_STATUS_REMOTE_DESC_ERROR 0x100
#define VIP_STATUS_ERROR_MASK 0x1FE
#define VIP_STATUS_OP_SEND 0
#define VIP_STATUS_OP_RECEIVE 0x10000
#define VIP_STATUS_OP_RDMA_WRITE 0x20000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x30000
#define VIP_STATUS_OP_RDMA_READ 0x40000
#define VIP_STATUS_OP_MASK 0x70000
#define VIP_STATUS_IMMEDIATE 0x80000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* Attributes */

typedef struct {
    VIP_CHAR Name[64];
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;
    const VIP_UINT8 *LocalNicAddress;
    VIP_BOOLEAN ThreadSafe;
    VIP_UINT16 MaxDiscriminatorLen;
    VIP_ULONG MaxRegisterBytes;
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes;
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue;
    VIP_ULONG MaxSegmentsPerDesc;
    VIP_ULONG MaxCQ;
    VIP_ULONG MaxCQEntries;
    VIP_ULONG MaxTransferSize;
    VIP_ULONG NativeMTU;
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport;
    VIP_RELIABILITY_LEVEL RDMAReadSupport;
    VIP_PVOID NicAttribs; /* of the provider; always NULL here */
} VIP_NIC_ATTRIBUTES;

typedef struct {
    VIP_RELIABILITY_LEVEL ReliabilityLevel;
    VIP_ULONG MaxTransferSize;
    VIP_QOS QoS;
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_VI_ATTRIBUTES;

typedef struct {
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

typedef enum {
    VIP_STATE_IDLE,
    VIP_STATE_CONNECTED,
    VIP_STATE_CONNECT_PENDING,
    VIP_STATE_ERROR
} VIP_VI_STATE;

typedef struct {
    VIP_ULONG NumberOfHops;
    VIP_NET_ADDRESS **ADAddrArray;
    VIP_ULONG NumAdAddrs;
} VIP_AUTODISCOVERY_LIST;

/* Return values and errors */

typedef enum {
    VIP_SUCCESS,
    VIP_NOT_DONE,
    VIP_INVALID_PARAMETER,
    VIP_ERROR_RESOURCE,
    VIP_TIMEOUT,
    VIP_REJECT,
    VIP_INVALID_RELIABILITY_LEVEL,
    VIP_INVALID_MTU,
    VIP_INVALID_QOS,
    VIP_INVALID_PTAG,
    VIP_INVALID_RDMAREAD,
    VIP_DESCRIPTOR_ERROR,
    VIP_INVALID_STATE,
    VIP_ERROR_NAMESERVICE,
    VIP_NO_MATCH,
    VIP_NOT_REACHABLE
} VIP_RETURN;

typedef enum {
    VIP_ERROR_POST_DESC,
    VIP_ERROR_CONN_LOST,
    VIP_ERROR_RECVQ_EMPTY,
    VIP_ERROR_VI_OVERRUN,
    VIP_ERROR_RDMAW_PROT,
    VIP_ERROR_RDMAW_DATA,
    VIP_ERROR_RDMAW_ABORT,
    VIP_ERROR_RDMAR_PROT,
    VIP_ERROR_COMP_PROT,
    VIP_ERROR_RDMA_TRANSPORT,
    VIP_ERROR_CATASTROPHIC
} VIP_ERROR_CODE;

typedef enum {
    VIP_RESOURCE_NIC,
    VIP_RESOURCE_VI,
    VIP_RESOURCE_CQ,
    VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

typedef struct {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR *DescriptorPtr;
    VIP_ULONG OpCode;
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

typedef void (*VIP_NOTIFY_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_NOTIFY_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_BOOLEAN RecvQueue);
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *Error);

/* NICs */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle);
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *Attributes);
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler);
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo);

/* VIs */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *Attributes, VIP_CQ_HANDLE SendCQ,
                       VIP_CQ_HANDLE RecvCQ, VIP_VI_HANDLE *ViHandle);
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *Attributes,
                      VIP_BOOLEAN *SendQueueEmpty, VIP_BOOLEAN *RecvQueueEmpty);
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *Attributes);

/* Connections */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteAttributes,
                          VIP_CONN_HANDLE *ConnHandle);
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES *RemoteAttributes);
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                                 VIP_ULONG Timeout);
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteAttributes);
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteAttributes);

/* Memory */
VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *Ptag);
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag);
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES *Attributes, VIP_MEM_HANDLE *Handle);
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle);
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle,
                               VIP_MEM_ATTRIBUTES *Attributes);
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle,
                       VIP_MEM_ATTRIBUTES *Attributes);

/* Transfers */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle);
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle);
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_NOTIFY_HANDLER Handler);
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_NOTIFY_HANDLER Handler);

/* Completion queues */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle);
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_NOTIFY_HANDLER Handler);

/* Names */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address, VIP_ULONG Index);
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name,
                              VIP_ULONG *NameLength);

/* Extensions of this provider */

/* What a send does when no receive is posted at the other side. */
#define VIP_EXT_FLOW_COMPLIANT 0    /* as the specification says */
#define VIP_EXT_FLOW_NONBLOCKING 1  /* VIP_NOT_DONE, nothing is posted */
#define VIP_EXT_FLOW_BLOCKING 2     /* the call waits */
#define VIP_EXT_FLOW_ASYNCHRONOUS 3 /* sent when a receive is posted */

/* Memory that large messages are placed into without a copy. */
VIP_RETURN VipExtAllocMem(VIP_NIC_HANDLE NicHandle, VIP_ULONG Length, VIP_MEM_ATTRIBUTES *Attributes,
                          VIP_PVOID *Address, VIP_MEM_HANDLE *Handle);
VIP_RETURN VipExtFreeMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle);
VIP_RETURN VipExtPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle, VIP_ULONG Flow,
                          VIP_ULONG Timeout);
VIP_RETURN VipExtSetFlow(VIP_VI_HANDLE ViHandle, VIP_ULONG Flow);
/* A message longer than a receive goes on in the next one; CS.Reserved is 1 in all but the last. */
VIP_RETURN VipExtSetSplit(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN Split);
VIP_RETURN VipExtSetUserWord(VIP_VI_HANDLE ViHandle, VIP_UINT64 Word);
VIP_RETURN VipExtGetUserWord(VIP_VI_HANDLE ViHandle, VIP_UINT64 *Word);
/* A descriptor for poll(2): readable when VipCQDone may find something. */
VIP_RETURN VipExtCQDescriptor(VIP_CQ_HANDLE CQHandle, int *Descriptor);
/* Moves a queue of a VI to another completion queue, or with NULL to none. */
VIP_RETURN VipExtMoveVi(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN RecvQueue, VIP_CQ_HANDLE CQHandle);

#ifdef __cplusplus
}
#endif

#endif /* VIPL_H */
