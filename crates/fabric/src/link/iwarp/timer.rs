//! The one timer of a link: it goes off when the first of its sessions wants to be told the time.

use std::{
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use sidestep_shm::{self as shm, doorbell::Sleeper};
use sidestep_sys::{
    descriptor::keep,
    lock::{Mutex, MutexGuard},
};

use crate::error::Result;

/// A timer in a set of descriptors. Times count from a moment of its link's choice.
#[derive(Debug)]
pub(super) struct Timer {
    descriptor: OwnedFd,
    /// That moment, in nanoseconds of the monotonic clock.
    began: u64,
    /// When it goes off, if it is set.
    at: Mutex<Option<Duration>>,
}

impl Timer {
    /// A timer whose token shows up in `ready` when it has gone off.
    pub(super) fn new(began: u64, ready: &Sleeper, token: u64) -> Result<Timer> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map(keep)
            .map_err(|errno| shm::Error::from_errno("make a timer", errno))?;
        ready.add_level(descriptor.as_fd(), token)?;
        Ok(Timer { descriptor, began, at: Mutex::new(None) })
    }

    /// Lets it go off by then.
    pub(super) fn set(&self, at: Option<Duration>) {
        let Some(at) = at else { return };
        let mut set = self.lock();
        if set.is_some_and(|earlier| earlier <= at) {
            return;
        }
        // A time in the past goes off at once; zero would never.
        let time = Duration::from_nanos(self.began) + at.max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &setting).is_ok() {
            *set = Some(at);
        }
    }

    /// It has gone off, and is not set any more.
    pub(super) fn clear(&self) {
        let mut set = self.lock();
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
        *set = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Duration>> {
        self.at.lock().expect("no panic while a timer is set")
    }
}
