/*
 * vipl.h - the Virtual Interface Provider Library, VIPL 1.0.
 *
 * Link with -lvipl. The manual page vipl(3) is the overview, and each call has a page of its own, such as
 * VipPostSend(3). The calls that begin with VipExt are extensions of this provider.
 *
 * A handle that is wrong, freed or null is answered with VIP_INVALID_PARAMETER, a protection tag with
 * VIP_INVALID_PTAG. Times are in milliseconds; 0 only looks, VIP_INFINITE waits.
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
typedef short VIP_SHORT;
typedef unsigned short VIP_USHORT;
typedef long VIP_LONG;
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

/* What happens to a message that finds no receive: dropped; ends the connection; ends it and the sender is told. */
#define VIP_SERVICE_UNRELIABLE 1
#define VIP_SERVICE_RELIABLE_DELIVERY 2
#define VIP_SERVICE_RELIABLE_RECEPTION 4
/* Beside one of these, as other providers have it: sends that find no receive wait for one (VipPostDeferredSends). */
#define VIP_SERVICE_DFC 0x8000

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

struct _VIP_DESCRIPTOR;

/* An address, in eight bytes on every machine. */
typedef union {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

/* Who to connect to: a host, and a discriminator there. The program allocates room for both. */
typedef struct _VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1]; /* the host address, then the discriminator */
} VIP_NET_ADDRESS;

/* Descriptors */

#define VIP_DESCRIPTOR_ALIGNMENT 64

/* The head of a descriptor. */
typedef struct {
    VIP_PVOID64 Next;          /* not used */
    VIP_MEM_HANDLE NextHandle; /* not used */
    VIP_UINT16 SegCount;       /* segments that follow, the remote one included */
    VIP_UINT16 Control;        /* VIP_CONTROL_ bits */
    VIP_UINT32 Reserved;       /* 0; with VipExtSetSplit, 1 if the message goes on in the next receive */
    VIP_UINT32 ImmediateData;  /* sent with VIP_CONTROL_IMMEDIATE, received with VIP_STATUS_IMMEDIATE */
    VIP_UINT32 Length;         /* before: the sum of the data segments, or 0; then: the bytes transferred */
    VIP_UINT32 Status;         /* VIP_STATUS_ bits, written last */
} VIP_CONTROL_SEGMENT;

/* Memory of the peer: the first segment of an RDMA write or read. */
typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* Memory of this side. */
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
VIP_ANONYMOUS typedef struct VIP_ALIGNED _VIP_DESCRIPTOR {
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

/* What VipQueryNic tells: 200 bytes where a long has eight, as in other providers' headers. */
typedef struct _VIP_NIC_ATTRIBUTES {
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
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel;
    VIP_ULONG MaxTransferSize; /* 0: as much as the NIC can */
    VIP_QOS QoS;               /* NULL */
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
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
    /* The following are other providers'; only the first is returned here. */
    VIP_NOT_REACHABLE,
    VIP_ERROR_NOT_SUPPORTED,
    VIP_ERROR
} VIP_RETURN;

/* What an error handler is told of. */
typedef enum _VIP_ERROR_CODE {
    VIP_ERROR_POST_DESC,      /* a descriptor that does not lie in registered memory was posted */
    VIP_ERROR_CONN_LOST,      /* the peer has gone, or broke the protocol */
    VIP_ERROR_RECVQ_EMPTY,    /* a message found no receive, on a reliable VI */
    VIP_ERROR_VI_OVERRUN,     /* a completion queue has more entries than it was made for; none is lost */
    VIP_ERROR_RDMAW_PROT,     /* a write of the peer to memory that it may not write */
    VIP_ERROR_RDMAW_DATA,     /* does not occur: damaged data end the connection */
    VIP_ERROR_RDMAW_ABORT,    /* the connection was lost amid a write of the peer */
    VIP_ERROR_RDMAR_PROT,     /* a read of the peer from memory that it may not read */
    VIP_ERROR_COMP_PROT,      /* a posted descriptor's memory was deregistered: its outcome is not written */
    VIP_ERROR_RDMA_TRANSPORT, /* the connection was lost amid an RDMA operation of this side */
    VIP_ERROR_CATASTROPHIC    /* the NIC works no more */
} VIP_ERROR_CODE;

typedef enum _VIP_RESOURCE_CODE {
    VIP_RESOURCE_NIC,
    VIP_RESOURCE_VI,
    VIP_RESOURCE_CQ,
    VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;        /* NULL if it is about none; so are the next two */
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR *DescriptorPtr;
    VIP_ULONG OpCode;              /* one of VIP_STATUS_OP_ */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

typedef void (*VIP_NOTIFY_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_NOTIFY_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_BOOLEAN RecvQueue);
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *Error);
/* The same by other providers' names. */
typedef VIP_NOTIFY_HANDLER VIP_VI_CALLBACK;
typedef VIP_CQ_NOTIFY_HANDLER VIP_CQ_CALLBACK;

/* NICs */
/* Opens a NIC: "nic0", or another name of the first device, on shared memory; "iwarp" over TCP. */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle);
/* Closes a NIC, and everything that was made with it. */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);
/* Tells the limits of a NIC. */
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *Attributes);
/* Sets the handler of errors that no descriptor tells of, or with NULL none. It runs in a thread of the library. */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler);
/* With VIP_SMI_AUTODISCOVERY: a VIP_AUTODISCOVERY_LIST with the address of this host. */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo);

/* VIs */
/* Makes a VI. A queue reports to a completion queue, if one is given for it. */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *Attributes, VIP_CQ_HANDLE SendCQ,
                       VIP_CQ_HANDLE RecvCQ, VIP_VI_HANDLE *ViHandle);
/* Destroys a VI that is not connected and whose descriptors have all been taken. */
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);
/* Tells the state of a VI, its attributes, and whether its queues are empty. Any of the pointers may be NULL. */
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *Attributes,
                      VIP_BOOLEAN *SendQueueEmpty, VIP_BOOLEAN *RecvQueueEmpty);
/* Changes the attributes of a VI that is idle. */
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *Attributes);

/* Connections */
/* Waits for a request to connect. */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteAttributes,
                          VIP_CONN_HANDLE *ConnHandle);
/* Connects a VI with the one that has asked. If the two do not agree, the connection handle stays. */
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);
/* Refuses a request. */
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);
/* Asks a server that waits; tries again until the time is over while nobody does. */
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES *RemoteAttributes);
/* Ends a connection, or the error state: what has not completed is flushed, and the VI is idle. */
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);
/* Begins to connect with a peer that does the same with the two addresses the other way round. */
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                                 VIP_ULONG Timeout);
/* Whether the two have met. */
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteAttributes);
/* Waits until they have, or the time of the request is over. */
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteAttributes);

/* Memory */
/* Makes a protection tag: a VI uses only memory of its own tag. */
VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *Ptag);
/* Gives a protection tag back that nothing uses. */
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag);
/* Registers memory, which has to stay until it is deregistered. Bookkeeping only: nothing is pinned. */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES *Attributes, VIP_MEM_HANDLE *Handle);
/* Ends a registration. When this returns, no peer writes or reads the memory. */
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle);
/* Changes the attributes of registered memory. */
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle,
                               VIP_MEM_ATTRIBUTES *Attributes);
/* Tells them. */
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle,
                       VIP_MEM_ATTRIBUTES *Attributes);

/* Transfers */
/* Posts a send, or an RDMA write or read. Handle is that of the memory the descriptor lies in. */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle);
/* Posts room for one message. Allowed before the VI is connected. */
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle);
/* Takes the next send that has completed: VIP_SUCCESS, VIP_DESCRIPTOR_ERROR, or VIP_NOT_DONE. */
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptor);
/* The same for receives. */
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptor);
/* Waits for it. Not for a queue that reports to a completion queue. */
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
/* The same for receives. */
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
/* Has a handler called once, with the next send that completes, which is taken by that. */
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_NOTIFY_HANDLER Handler);
/* The same for receives. */
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_NOTIFY_HANDLER Handler);

/* Completion queues */
/* Makes a completion queue. */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle);
/* Destroys a completion queue that no VI reports to. */
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);
/* Changes how many entries it is meant to hold. */
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);
/* Whose completion is next, and of which queue. The descriptor is then taken by VipSendDone or VipRecvDone. */
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
/* Waits for it. */
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
/* Has a handler called once for it. */
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_NOTIFY_HANDLER Handler);

/* Names */
/* Begins to use the name service: with a file in the form of hosts(5), or NULL. */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);
/* Ends that. */
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);
/* The address of a host; a host with several has them under Index 0, 1, 2 and so on. */
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address, VIP_ULONG Index);
/* The name of a host. NameLength is the room for it, and then what it takes. */
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name,
                              VIP_ULONG *NameLength);

/* Names that other providers have */

/* A pointer of the program's own at a VI: the user word of VipExtSetUserWord. */
void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data);
VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle);
/* Goes on with sends that wait for a receive of the other side, and tells whether some still do. */
VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN EnableInterrupt, VIP_BOOLEAN *SendsDeferred);

/* Extensions of this provider */

/* What a send does when no receive is posted at the other side. */
#define VIP_EXT_FLOW_COMPLIANT 0    /* as the specification says */
#define VIP_EXT_FLOW_NONBLOCKING 1  /* VIP_NOT_DONE, nothing is posted */
#define VIP_EXT_FLOW_BLOCKING 2     /* the call waits */
#define VIP_EXT_FLOW_ASYNCHRONOUS 3 /* sent when a receive is posted */

/* Memory that large messages are placed into without a copy. */
VIP_RETURN VipExtAllocMem(VIP_NIC_HANDLE NicHandle, VIP_ULONG Length, VIP_MEM_ATTRIBUTES *Attributes,
                          VIP_PVOID *Address, VIP_MEM_HANDLE *Handle);
/* Deregisters and frees it. */
VIP_RETURN VipExtFreeMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE Handle);
/* A send with flow control of its own; the time is for the blocking kind. */
VIP_RETURN VipExtPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Handle, VIP_ULONG Flow,
                          VIP_ULONG Timeout);
/* The flow control of all other sends of a VI. */
VIP_RETURN VipExtSetFlow(VIP_VI_HANDLE ViHandle, VIP_ULONG Flow);
/* A message longer than a receive goes on in the next one; CS.Reserved is 1 in all but the last. */
VIP_RETURN VipExtSetSplit(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN Split);
/* Whether peers place messages in receives themselves. Without, they never get at that memory; for the next connection. */
VIP_RETURN VipExtSetPlacing(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN Placing);
/* A word of the program's own at a VI. */
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
