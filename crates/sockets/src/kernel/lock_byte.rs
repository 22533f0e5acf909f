//! Locks on single bytes of a file, held by an open file (not by a process): the kernel gives one back when the last
//! descriptor of that open file is closed, so with the death of its process, in whatever pid namespace that was.

/// Locks a byte for an open file. `false`: another one has it, or the file cannot be locked.
pub fn lock_byte(fd: i32, at: u64) -> bool {
    let mut record = record(at);
    // K1: the record lives until the call returns.
    super::control(fd, libc::F_OFD_SETLK, (&raw mut record) as usize).is_ok()
}

/// Whether another open file than this has locked a byte. Where the kernel does not say: yes.
pub fn is_byte_locked(fd: i32, at: u64) -> bool {
    let mut record = record(at);
    // K1: as above; the kernel writes what it has found.
    let asked = super::control(fd, libc::F_OFD_GETLK, (&raw mut record) as usize);
    asked.is_err() || libc::c_int::from(record.l_type) != libc::F_UNLCK
}

fn record(at: u64) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at as libc::off_t,
        l_len: 1,
        l_pid: 0,
    }
}
