//! Links of other crates, under schemes of their own: a program that has one says so once, and from then on whatever opens links by
//! name (nodes, NICs, RPC) finds it.

use std::{collections::BTreeMap, sync::Arc};

use sidestep_sys::lock::Mutex;

use super::{Link, LinkOptions, SCHEMES};
use crate::error::{Error, Result};

/// Makes a link of this process.
type Opener = dyn Fn(&LinkOptions) -> Result<Box<dyn Link>> + Send + Sync;

static PROVIDED: Mutex<BTreeMap<&'static str, Arc<Opener>>> = Mutex::new(BTreeMap::new());

/// Lets [`open`](super::open) make links of a scheme by calling `opener`. A scheme of this crate, or one that is there already, stays
/// as it is, which is an error.
pub fn provide(
    scheme: &'static str,
    opener: impl Fn(&LinkOptions) -> Result<Box<dyn Link>> + Send + Sync + 'static,
) -> Result<()> {
    let mut provided = PROVIDED.lock().expect("no panic while a link is provided");
    if SCHEMES.contains(&scheme) || provided.contains_key(scheme) {
        return Err(Error::Name { name: scheme.to_string(), must: "a scheme that no link has" });
    }
    provided.insert(scheme, Arc::new(opener));
    Ok(())
}

/// A link of a scheme that is not of this crate.
pub(super) fn open(scheme: &str, options: &LinkOptions) -> Result<Box<dyn Link>> {
    let (opener, known) = {
        let provided = PROVIDED.lock().expect("no panic while a link is provided");
        let known: Vec<_> = SCHEMES.into_iter().chain(provided.keys().copied()).collect();
        (provided.get(scheme).cloned(), known.join(", "))
    };
    opener.ok_or(Error::Scheme { scheme: scheme.into(), known: known.into() })?(options)
}
