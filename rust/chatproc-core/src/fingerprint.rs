//! Canonical bytes to SHA-256: what content, groups, tasks and settings are known by.
//! Pure. What goes into each digest is unambiguous: parts of any length carry their length.

use sha2::{Digest, Sha256};

use crate::json;

/// A SHA-256.
pub type Fingerprint = [u8; 32];

/// SHA-256 over the parts, one after the other.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> Fingerprint {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update(part);
    }
    sha.finalize().into()
}

/// Lower-case hexadecimal, as in all ids and published digests.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// A sent message's part of its segment's fingerprint; a missing name is not an empty one.
#[must_use]
pub fn message_digest(
    key: &str,
    revision: u64,
    content_hash: &Fingerprint,
    sender_name: Option<&str>,
) -> Fingerprint {
    let name = sender_name.unwrap_or_default();
    sha256(&[
        &length(key),
        key.as_bytes(),
        &revision.to_be_bytes(),
        content_hash,
        &[u8::from(sender_name.is_some())],
        &length(name),
        name.as_bytes(),
    ])
}

/// A segment's fingerprint: its sent messages in order, each with whether it is a subject one (else
/// history), and how its continuity is known.
#[must_use]
pub fn content_fp<'a>(
    continuity: &str,
    members: impl IntoIterator<Item = (&'a Fingerprint, bool)>,
) -> Fingerprint {
    let mut sha = Sha256::new();
    sha.update(length(continuity));
    sha.update(continuity);
    for (digest, subject) in members {
        sha.update(digest);
        sha.update([u8::from(subject)]);
    }
    sha.finalize().into()
}

/// A group's fingerprint: those of its segments in order.
#[must_use]
pub fn group_fp<'a>(content_fps: impl IntoIterator<Item = &'a Fingerprint>) -> Fingerprint {
    let mut sha = Sha256::new();
    for content_fp in content_fps {
        sha.update(content_fp);
    }
    sha.finalize().into()
}

/// The id that a group is shown by, such as `g_mfzwizltoq…`.
#[must_use]
pub fn group_id(group_fp: &Fingerprint) -> String {
    id("g_", group_fp)
}

/// The id of a group's new task at `position`, from 0, of the submitted list. `collision` is the
/// commit's number, given when the id without it exists.
#[must_use]
pub fn task_id(group_fp: &Fingerprint, position: usize, collision: Option<i64>) -> String {
    let group = hex(group_fp);
    let text = match collision {
        None => format!("{group}:{position}"),
        Some(commit) => format!("{group}:{position}:{commit}"),
    };
    id("t_", &sha256(&[text.as_bytes()]))
}

/// The id of the event that publishes a task's revision, the same for ever.
#[must_use]
pub fn task_event_id(task_id: &str, revision: u64) -> String {
    hex(&sha256(&[format!("{task_id}:{revision}").as_bytes()]))
}

/// The fingerprint of settings: over compact JSON with sorted keys and numbers by value.
#[must_use]
pub fn settings_fp(settings: &serde_json::Value) -> Fingerprint {
    let mut canonical = Vec::new();
    write_canonical(&mut canonical, settings);
    sha256(&[&canonical])
}

fn write_canonical(out: &mut Vec<u8>, value: &serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Number(number) => json::write_number(out, &number.to_string()),
        Value::String(text) => json::write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_canonical(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                json::write_string(out, key);
                out.push(b':');
                write_canonical(out, member);
            }
            out.push(b'}');
        }
    }
}

/// The first 26 characters of a digest in base32, 130 bits.
fn id(prefix: &str, digest: &Fingerprint) -> String {
    let mut id = prefix.to_owned();
    data_encoding::BASE32_NOPAD.encode_append(digest, &mut id);
    id.truncate(prefix.len() + 26);
    id.make_ascii_lowercase();
    id
}

fn length(text: &str) -> [u8; 8] {
    (text.len() as u64).to_be_bytes()
}
