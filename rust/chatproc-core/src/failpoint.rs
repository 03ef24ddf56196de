//! Named places where a test kills the process. Without the feature `failpoints`, which no wheel has,
//! a fail point is nothing at all.

/// Kills the process, as a power cut would, when the environment names this point.
///
/// `CHATPROC_FAILPOINT=NAME` kills at the first hit, `NAME:K` at the K-th (from 1).
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static HITS: AtomicU64 = AtomicU64::new(0);
    let Ok(wanted) = std::env::var("CHATPROC_FAILPOINT") else { return };
    let (wanted, number) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == number.parse().unwrap_or(1) {
        // `abort` runs no destructor and flushes nothing: to the store it is a kill.
        std::process::abort();
    }
}

/// Does nothing: fail points are compiled out.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
