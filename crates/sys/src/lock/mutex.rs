//! The standard library's mutex; in debug builds its order is watched.

use std::{
    ops::{Deref, DerefMut},
    sync::{LockResult, Mutex as Inner, MutexGuard as InnerGuard, PoisonError, TryLockError, TryLockResult},
};

use super::order::{Kind, Mark};

/// A mutex, told apart from others by the type of its value and by where it was made.
#[derive(Debug)]
pub struct Mutex<T> {
    inner: Inner<T>,
    kind: Kind,
}

/// The right to the value, until it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    inner: InnerGuard<'a, T>,
    _mark: Mark,
}

impl<T> Mutex<T> {
    /// A mutex around a value.
    #[track_caller]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { inner: Inner::new(value), kind: Kind::here() }
    }

    /// Takes it, and waits if another thread has it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.kind.wanted::<T>();
        match self.inner.lock() {
            Ok(inner) => Ok(self.guard(inner)),
            Err(poison) => Err(PoisonError::new(self.guard(poison.into_inner()))),
        }
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(self.guard(inner)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poison)) => Err(PoisonError::new(self.guard(poison.into_inner())).into()),
        }
    }

    /// The value of a mutex that nobody else has.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    #[inline]
    fn guard<'a>(&self, inner: InnerGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner, _mark: self.kind.taken::<T>() }
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
