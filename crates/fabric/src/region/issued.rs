//! The cookies of a region that are good: the one place that decides whether the owner honours one.

use std::sync::{
    RwLock, RwLockReadGuard,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use sidestep_sys::clock;

use crate::{
    cookie::{Cookie, RegionId, Rights},
    error::{Refusal, Result},
    random::Random,
};

/// What was issued and not taken back.
#[derive(Debug)]
pub(super) struct IssuedCookies {
    region: RegionId,
    len: u64,
    generation: AtomicU32,
    /// Whether there ever was one.
    any: AtomicBool,
    /// Read while a cookie is used, written while cookies are issued or revoked: nothing lands after a revocation.
    entries: RwLock<Vec<Issued>>,
}

/// The good cookies, of which none comes or goes as long as this lives.
#[derive(Debug)]
pub(super) struct Valid<'a> {
    cookies: &'a IssuedCookies,
    entries: RwLockReadGuard<'a, Vec<Issued>>,
}

/// No cookie that lets a peer write to a region is issued as long as this lives.
#[derive(Debug)]
pub(crate) struct Still<'a>(#[expect(dead_code, reason = "held, not looked at")] Valid<'a>);

#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    key: u128,
    rights: Rights,
    pub(super) expires: Option<u64>,
}

impl IssuedCookies {
    pub(super) fn new(region: RegionId, len: usize, generation: u32) -> IssuedCookies {
        IssuedCookies {
            region,
            len: len as u64,
            generation: AtomicU32::new(generation),
            any: AtomicBool::new(false),
            entries: RwLock::default(),
        }
    }

    /// Cookies of an earlier generation are revoked.
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether none was ever issued, so that no peer can use or have used the region.
    pub(super) fn were_never_issued(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn issue(&self, rights: Rights, expires: Option<u64>) -> Cookie {
        self.any.store(true, Ordering::Release);
        let mut entries = self.entries.write().expect("no panic while issuing");
        let now = if entries.iter().any(|entry| entry.expires.is_some()) { clock::now() } else { 0 };
        entries.retain(|entry| entry.expires.is_none_or(|expires| expires > now));
        let known = entries.iter().find(|entry| entry.rights == rights && entry.expires.is_none());
        let key = match (known, expires) {
            (Some(entry), None) => entry.key,
            _ => {
                let key = Random::key();
                entries.push(Issued { key, rights, expires });
                key
            }
        };
        Cookie { key, region: self.region, generation: self.generation(), len: self.len, rights }
    }

    /// Takes every cookie back, if `before` succeeds, which is called while none is in use.
    pub(super) fn revoke<T>(&self, before: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut entries = self.entries.write().expect("no panic while issuing");
        let outcome = before()?;
        entries.clear();
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(outcome)
    }

    pub(super) fn valid(&self) -> Valid<'_> {
        Valid { cookies: self, entries: self.entries.read().expect("no panic while issuing") }
    }
}

impl<'a> Valid<'a> {
    /// Where the range begins, if the owner honours a cookie for `wanted` on it.
    pub(super) fn admit(&self, cookie: &Cookie, wanted: Rights, (offset, len): (u64, u64)) -> Result<usize, Refusal> {
        self.admit_cookie(cookie)?;
        if !cookie.rights.allow(wanted) {
            return Err(Refusal::Rights { held: cookie.rights, wanted });
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.cookies.len => Ok(offset as usize),
            _ => Err(Refusal::Range { offset, len }),
        }
    }

    /// What was issued as this cookie.
    pub(super) fn admit_cookie(&self, cookie: &Cookie) -> Result<Issued, Refusal> {
        let generation = self.cookies.generation();
        if cookie.generation != generation {
            let earlier = generation.wrapping_sub(cookie.generation) < 1 << 31;
            return Err(if earlier { Refusal::Revoked } else { Refusal::Forged });
        }
        let entry = self.entries.iter().find(|entry| entry.key == cookie.key && entry.rights == cookie.rights);
        let entry = *entry.ok_or(Refusal::Forged)?;
        if cookie.len != self.cookies.len {
            return Err(Refusal::Forged);
        }
        if entry.expires.is_some_and(|expires| clock::now() >= expires) {
            return Err(Refusal::Expired);
        }
        Ok(entry)
    }

    /// Keeps it so that no peer can write; `None` if one may already.
    pub(super) fn still(self) -> Option<Still<'a>> {
        let writable = |entry: &Issued| entry.rights.allow(Rights::WRITE) || entry.rights.allow(Rights::ATOMIC);
        (!self.entries.iter().any(writable)).then_some(Still(self))
    }
}
