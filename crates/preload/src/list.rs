// The list of intercepted calls. From it are made: the exports, the table of next functions, the table of the manual.
//
// [rust or asm, the system call to use while nothing is looked up yet]
// name(arguments) -> result => wrapper, also other names with the same wrapper; verdict "why";

intercepted! {
    "Receiving and sending" {
        [rust, raw SYS_read] read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t
            => transfer::read, also __read; handled "receives from the stream";
        [rust] __read_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t
            => transfer::read_chk; handled "as `read`; a count above the buffer ends the program as in libc";
        [rust, raw SYS_write] write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t
            => transfer::write, also __write; handled "sends on the stream; EPIPE raises SIGPIPE";
        [rust, raw SYS_readv] readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t
            => vector::readv; handled "as `read`";
        [rust, raw SYS_writev] writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t
            => vector::writev; handled "as `write`";
        [rust] preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
            => vector::preadv2, also preadv64v2;
            handled "offset -1 without flags is `readv`; with flags the stream goes back to TCP first; another offset is ESPIPE";
        [rust] pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
            => vector::pwritev2, also pwritev64v2; handled "as `preadv2`, with `writev`";
        [rust] recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t
            => transfer::recv; handled "MSG_PEEK, WAITALL, DONTWAIT, TRUNC as on TCP; MSG_ERRQUEUE is the kernel's; MSG_OOB and unknown flags take the stream back to TCP";
        [rust] __recv_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t, flags: c_int) -> ssize_t
            => transfer::recv_chk; handled "as `recv`";
        [rust] send(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t
            => transfer::send, also __send; handled "MSG_DONTWAIT, NOSIGNAL, MORE as on TCP; MSG_OOB, ZEROCOPY and unknown flags take the stream back to TCP";
        [rust, raw SYS_recvfrom] recvfrom(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int, address: *mut sockaddr, len: *mut socklen_t) -> ssize_t
            => transfer::recvfrom; handled "as `recv`; the address stays empty, as on TCP";
        [rust] __recvfrom_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t, flags: c_int, address: *mut sockaddr, len: *mut socklen_t) -> ssize_t
            => transfer::recvfrom_chk; handled "as `recvfrom`";
        [rust, raw SYS_sendto] sendto(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int, address: *const sockaddr, len: socklen_t) -> ssize_t
            => transfer::sendto; handled "as `send`; the address is ignored, as on TCP";
        [rust, raw SYS_recvmsg] recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t
            => message::recvmsg; handled "as `recv`; a promoted stream has one control message, that of TCP_INQ; other options that make some take the stream back to TCP";
        [rust, raw SYS_sendmsg] sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t
            => message::sendmsg; handled "as `send`; with control messages the stream goes back to TCP first. On a UNIX socket: a stream among the descriptors passed goes back to TCP first";
        [rust] recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int
            => message::recvmmsg; handled "one `recvmsg` after another";
        [rust] sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int
            => message::sendmmsg; handled "one `sendmsg` after another";
        [rust] sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t
            => file::sendfile, also sendfile64; handled "the file is read into the ring, straight where the kernel has it in memory; from a socket the kernel refuses it";
        [rust] splice(from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, len: size_t, flags: c_uint) -> ssize_t
            => file::splice; handled "between a stream and a pipe bytes are copied; with offsets the stream goes back to TCP first";
    }

    "Connections" {
        [rust] socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int
            => connection::socket; handled "a socket of TCP is a stream from now on, so that whatever is done to it before `connect` is known (sets, copies, options, children)";
        [rust] connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int
            => connection::connect, also __connect; handled "the kernel connects; then the stream may be promoted. A socket that this process has not made stays on TCP. AF_UNSPEC takes the stream back to TCP first, and the socket is the kernel's from then on";
        [rust] accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int
            => connection::accept; handled "the kernel accepts; then the socket is a stream";
        [rust] accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int
            => connection::accept4; handled "as `accept`";
        [rust] shutdown(fd: c_int, how: c_int) -> c_int
            => connection::shutdown; handled "ends a direction on both paths";
        [rust] setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int
            => option::setsockopt; handled "the kernel takes the option, and the stream learns of it; an option outside the table below takes the stream back to TCP first";
        [rust] getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int
            => option::getsockopt; passed "the kernel knows; TCP_ZEROCOPY_RECEIVE takes the stream back to TCP first";
    }

    "Descriptors" {
        [rust, raw SYS_close] close(fd: c_int) -> c_int
            => descriptor::close, also __close; handled "ends the stream with its last descriptor; an internal descriptor is EBADF and stays";
        [rust] close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int
            => descriptor::close_range; handled "closes streams, spares internal descriptors; CLOSE_RANGE_CLOEXEC is the kernel's";
        [rust] closefrom(first: c_int) -> ()
            => descriptor::closefrom; handled "as `close_range`";
        [rust] getrlimit(resource: c_uint, limit: *mut c_void) -> c_int
            => limit::getrlimit, also getrlimit64; handled "RLIMIT_NOFILE is the program's own: the engine raises it for a moment when it takes a number above it, and is waited for";
        [rust] setrlimit(resource: c_uint, limit: *const c_void) -> c_int
            => limit::setrlimit, also setrlimit64; handled "as `getrlimit`: what is set stays";
        [rust] prlimit(process: c_int, resource: c_uint, new: *const c_void, old: *mut c_void) -> c_int
            => limit::prlimit, also prlimit64; handled "as `getrlimit`";
        [rust] dup(fd: c_int) -> c_int
            => descriptor::dup; handled "both numbers are the stream";
        [rust] dup2(old: c_int, new: c_int) -> c_int
            => descriptor::dup2, also __dup2; handled "both numbers are the stream, and what was at the second is closed; at 0, 1 and 2, where libc reads and writes by itself, it goes back to TCP for good; an internal descriptor lies above the limit, where the kernel refuses it (EBADF)";
        [rust] dup3(old: c_int, new: c_int, flags: c_int) -> c_int
            => descriptor::dup3; handled "as `dup2`";
        [rust, raw SYS_fcntl] fcntl(fd: c_int, command: c_int, argument: usize) -> c_int
            => descriptor::fcntl, also fcntl64 __fcntl; handled "F_DUPFD as `dup`, F_SETFL tells the stream its mode; O_ASYNC takes it back to TCP; all else is the kernel's";
        [rust, raw SYS_ioctl] ioctl(fd: c_int, request: usize, argument: usize) -> c_int
            => descriptor::ioctl; handled "FIONREAD, SIOCOUTQ and FIONBIO; FIOASYNC and SIOCOUTQNSD take the stream back to TCP; all else is the kernel's";
    }

    "Waiting" {
        [rust] poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int
            => wait::poll, also __poll; handled "if a stream is in the list";
        [rust] __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int
            => wait::poll_chk; handled "as `poll`";
        [rust] ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int
            => wait::ppoll; handled "as `poll`";
        [rust] __ppoll_chk(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int
            => wait::ppoll_chk; handled "as `poll`";
        [rust] select(count: c_int, readable: *mut fd_set, writable: *mut fd_set, special: *mut fd_set, timeout: *mut timeval) -> c_int
            => select::select, also __select; handled "as `poll`, and back; the time left is written to the time-out";
        [rust] pselect(count: c_int, readable: *mut fd_set, writable: *mut fd_set, special: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int
            => select::pselect; handled "as `select`";
        [rust] epoll_create(size: c_int) -> c_int
            => set::epoll_create; handled "the kernel makes the set; the library keeps a list beside it";
        [rust] epoll_create1(flags: c_int) -> c_int
            => set::epoll_create1; handled "as `epoll_create`";
        [rust] epoll_ctl(set: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int
            => set::epoll_ctl; handled "for streams and all else in the set";
        [rust] epoll_wait(set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int
            => set::epoll_wait; handled "streams and what the kernel watches, in one answer";
        [rust] epoll_pwait(set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int, mask: *const sigset_t) -> c_int
            => set::epoll_pwait; handled "as `epoll_wait`";
        [rust] epoll_pwait2(set: c_int, events: *mut epoll_event, count: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int
            => set::epoll_pwait2; handled "as `epoll_wait`";
    }

    "Buffered and asynchronous input and output" {
        [rust] fdopen(fd: c_int, mode: *const c_char) -> *mut FILE
            => file::fdopen, also _IO_fdopen; passed "stdio reads and writes inside libc: the stream goes back to TCP for good, and what its peer does not send anew is put into libc's buffer";
        [rust] fclose(stream: *mut FILE) -> c_int
            => file::fclose, also _IO_fclose; passed "closes inside libc: the stream of that number is forgotten";
        [rust] freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE
            => file::freopen, also freopen64; passed "as `fclose`";
        [asm] dprintf(fd: c_int, format: *const c_char) -> c_int
            => file::dprintf; passed "writes inside libc: the stream goes back to TCP first";
        [asm] __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char) -> c_int
            => file::__dprintf_chk; passed "as `dprintf`";
        [rust] vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int
            => file::vdprintf; passed "as `dprintf`";
        [rust] __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int
            => file::vdprintf_chk; passed "as `dprintf`";
        [rust] aio_read(block: *mut aiocb) -> c_int
            => asynchronous::aio_read, also aio_read64; passed "another thread of libc reads: the stream goes back to TCP first, and bytes that stay here come through a pipe";
        [rust] aio_write(block: *mut aiocb) -> c_int
            => asynchronous::aio_write, also aio_write64; passed "as `aio_read`";
        [rust] lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int
            => asynchronous::lio_listio, also lio_listio64; passed "as `aio_read`, for each of the list";
    }

    "Processes" {
        [asm] vfork() -> c_int
            => process::vfork, also __vfork; handled "the child borrows the memory: all streams go back to TCP before, and all its calls pass straight to the kernel until it executes a program or ends";
        [rust] _Fork() -> c_int
            => process::fork_bare; handled "as `fork`, which is seen through `pthread_atfork`";
        [rust] clone(function: *mut c_void, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent: *mut c_void, local: *mut c_void, child: *mut c_void) -> c_int
            => process::clone, also __clone; handled "without CLONE_VM as `fork`; with CLONE_VFORK as `vfork`; else passed";
        [rust] execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
            => process::execve; passed "a stream that is kept open goes back to TCP first; the next program goes on with it (docs/sockets.md, Custody)";
        [rust] execv(path: *const c_char, arguments: *const *const c_char) -> c_int
            => process::execv; passed "as `execve`";
        [rust] execvp(file: *const c_char, arguments: *const *const c_char) -> c_int
            => process::execvp; passed "as `execve`";
        [rust] execvpe(file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
            => process::execvpe; passed "as `execve`";
        [rust] fexecve(fd: c_int, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
            => process::fexecve; passed "as `execve`";
        [rust] execveat(folder: c_int, path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char, flags: c_int) -> c_int
            => process::execveat; passed "as `execve`";
        [asm] execl(path: *const c_char, argument: *const c_char) -> c_int
            => variadic::execl; passed "as `execve`";
        [asm] execle(path: *const c_char, argument: *const c_char) -> c_int
            => variadic::execle; passed "as `execve`";
        [asm] execlp(file: *const c_char, argument: *const c_char) -> c_int
            => variadic::execlp; passed "as `execve`";
        [rust] posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
            => process::posix_spawn; passed "a stream that is kept open goes back to TCP first, and may be promoted again when the program has ended (docs/sockets.md, Custody)";
        [rust] posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
            => process::posix_spawnp; passed "as `posix_spawn`";
        [rust] system(command: *const c_char) -> c_int
            => process::system; passed "as `posix_spawn`: libc's own way to a new program is not seen";
        [rust] popen(command: *const c_char, mode: *const c_char) -> *mut FILE
            => process::popen, also _IO_popen; passed "as `system`";
        [rust] posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, new: c_int) -> c_int
            => process::adddup2; passed "the stream will be another program's: it goes back to TCP first";
        [rust] _exit(status: c_int) -> ()
            => process::exit_at_once, also _Exit; handled "what a carrier holds of streams is sent, and the peers are told of their ends, as at `exit` and `quick_exit`; then libc's";
    }

    "Signals" {
        [rust] pthread_cancel(thread: usize) -> c_int
            => cancel::pthread_cancel; passed "a thread in a call of the library ends it, at once or, if it is asleep, by a signal; one that was not meant goes on";
        [rust] sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int
            => signals::sigaction, also __sigaction; handled "the handler runs through the library, which counts it and puts it off inside its own critical sections; the old handler returned is the program's. Faults (SIGSEGV, BUS, FPE, ILL, TRAP, SYS, ABRT) pass";
        [rust] signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            => signals::signal, also bsd_signal ssignal; handled "as `sigaction`";
        [rust] sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            => signals::sysv_signal, also __sysv_signal; handled "as `sigaction`";
        [rust] sigset(signal: c_int, handler: sighandler_t) -> sighandler_t
            => signals::sigset; handled "as `sigaction`";
        [rust] siginterrupt(signal: c_int, interrupts: c_int) -> c_int
            => signals::siginterrupt; handled "as `sigaction`";
        [asm] longjmp(buffer: *mut c_void, value: c_int) -> ()
            => jump::longjmp; passed "from a handler: the call that it has interrupted is forgotten, as by the kernel";
        [asm] _longjmp(buffer: *mut c_void, value: c_int) -> ()
            => jump::_longjmp; passed "as `longjmp`";
        [asm] siglongjmp(buffer: *mut c_void, value: c_int) -> ()
            => jump::siglongjmp; passed "as `longjmp`";
        [asm] __longjmp_chk(buffer: *mut c_void, value: c_int) -> ()
            => jump::__longjmp_chk; passed "as `longjmp`";
        [asm] setcontext(context: *const c_void) -> c_int
            => jump::setcontext; passed "as `longjmp`";
    }

    "Sandboxes and changes of user" {
        [rust] setuid(user: uid_t) -> c_int
            => sandbox::setuid; passed "if it changes anything, promoted streams go back to TCP, and all that the engine has as the former user is given back first; new streams meet the processes of the new user";
        [rust] seteuid(user: uid_t) -> c_int
            => sandbox::seteuid; passed "as `setuid`";
        [rust] setreuid(real: uid_t, effective: uid_t) -> c_int
            => sandbox::setreuid; passed "as `setuid`";
        [rust] setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int
            => sandbox::setresuid; passed "as `setuid`";
        [rust] setfsuid(user: uid_t) -> c_int
            => sandbox::setfsuid; passed "for files only: nothing changes";
        [rust] setgid(group: gid_t) -> c_int
            => sandbox::setgid; passed "as `setuid`";
        [rust] setegid(group: gid_t) -> c_int
            => sandbox::setegid; passed "as `setuid`";
        [rust] setregid(real: gid_t, effective: gid_t) -> c_int
            => sandbox::setregid; passed "as `setuid`";
        [rust] setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int
            => sandbox::setresgid; passed "as `setuid`";
        [rust] setfsgid(group: gid_t) -> c_int
            => sandbox::setfsgid; passed "as `setfsuid`";
        [rust] setgroups(count: usize, groups: *const gid_t) -> c_int
            => sandbox::setgroups; passed "as `setuid`";
        [rust] initgroups(user: *const c_char, group: gid_t) -> c_int
            => sandbox::initgroups; passed "as `setuid`";
        [rust] chroot(path: *const c_char) -> c_int
            => sandbox::chroot; passed "the registry is opened first: streams stay where they are, and new ones are promoted under the new root, too";
        [rust] unshare(flags: c_int) -> c_int
            => sandbox::unshare; passed "if the process has had streams, all of them go back to TCP first, and new ones stay there: for namespaces of users, networks, processes, mounts and IPC, and for the table of descriptors";
        [rust] setns(fd: c_int, kind: c_int) -> c_int
            => sandbox::setns; passed "as `unshare`";
        [rust] prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int
            => sandbox::prctl; passed "PR_SET_SECCOMP: all streams go back to TCP first, for good, and from then on only the calls of the program itself are made";
    }

    "By number" {
        [asm] syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long
            => raw::syscall; handled "the numbers of the calls above, and `fork`, `clone3`: as the function; `seccomp`, `landlock_restrict_self`: as PR_SET_SECCOMP; `io_uring_setup`: all streams go back to TCP first, and new ones stay there; all others, and children with a stack of their own, go straight on";
    }
}
