//! What an object contains: a line with the stamp of the write, then the record's value.
//!
//! S3 derives an object's ETag from its content. Two writes of the same value would thus share a
//! version, and a delayed writer could take the second for the first. The stamp differs from write
//! to write, and so does the ETag, also after the object was deleted and created anew.

use incumbent_core::store::{Stamp, Version};
use object_store::UpdateVersion;

const START: &str = "{\"incumbent\":1,\"stamp\":\"";
const END: &str = "\"}\n";
/// Stands for what is missing in a version. No stamp, ETag or generation looks like it.
const NOTHING: &str = "-";

/// The content of an object.
pub(crate) fn wrap(stamp: Stamp, value: &[u8]) -> Vec<u8> {
    let mut content = format!("{START}{stamp}{END}").into_bytes();
    content.extend_from_slice(value);
    content
}

/// The stamp and the value of an object's content.
///
/// What somebody else put there has no stamp and is given as it is: the reader will find it
/// unreadable and say so, which is better than to take it for absent.
pub(crate) fn unwrap(content: &[u8]) -> (Option<&str>, &[u8]) {
    let Some(end) = content.iter().position(|byte| *byte == b'\n') else {
        return (None, content);
    };
    let (line, rest) = content.split_at(end);
    let stamp = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_prefix(START))
        // A later version may put more into this line.
        .and_then(|line| line.split_once('"'))
        .map(|(stamp, _)| stamp)
        .filter(|stamp| !stamp.is_empty() && !stamp.contains(' '));
    match (stamp, rest.split_first()) {
        (Some(stamp), Some((_, value))) => (Some(stamp), value),
        _ => (None, content),
    }
}

/// The version of an object: its stamp, which tells writes apart, and what the store compares.
pub(crate) fn version(
    stamp: Option<&str>,
    generation: Option<&str>,
    etag: Option<&str>,
) -> Version {
    let stamp = stamp.unwrap_or(NOTHING);
    let generation = generation.unwrap_or(NOTHING);
    Version::new(&format!("{stamp} {generation} {}", etag.unwrap_or(NOTHING)))
}

/// What the store has to compare with, or nothing if this is no version of such a store.
pub(crate) fn comparison(version: &Version) -> Option<UpdateVersion> {
    let mut parts = version.as_str().splitn(3, ' ');
    let (_, generation, etag) = (parts.next()?, parts.next()?, parts.next()?);
    let given = |part: &str| (part != NOTHING).then(|| part.to_owned());
    let comparison = UpdateVersion { e_tag: given(etag), version: given(generation) };
    (comparison.e_tag.is_some() || comparison.version.is_some()).then_some(comparison)
}

#[cfg(test)]
mod tests {
    use super::{comparison, unwrap, version, wrap};
    use incumbent_core::store::{Stamp, Version};

    #[test]
    fn values_come_back_byte_for_byte() {
        for value in [&b"{}"[..], b"", b"\n", b"a\nb\n", &[0, 255, 10]] {
            let content = wrap(Stamp { writer: 1, attempt: 2 }, value);
            assert_eq!(unwrap(&content), (Some("0000000000000001.2"), value));
        }
    }

    #[test]
    fn the_same_value_never_has_the_same_content() {
        let one = wrap(Stamp { writer: 1, attempt: 1 }, b"{}");
        assert_ne!(one, wrap(Stamp { writer: 1, attempt: 2 }, b"{}"));
        assert_eq!(one, b"{\"incumbent\":1,\"stamp\":\"0000000000000001.1\"}\n{}");
    }

    #[test]
    fn foreign_content_is_given_as_it_is() {
        for content in [&b"hello"[..], b"", b"\n", b"{\"incumbent\":2}\n{}", &[255, 10, 1]] {
            assert_eq!(unwrap(content), (None, content));
        }
    }

    #[test]
    fn a_version_says_what_to_compare_with() {
        let both = comparison(&version(Some("1.1"), Some("7"), Some("\"a b\""))).unwrap();
        assert_eq!((both.version.as_deref(), both.e_tag.as_deref()), (Some("7"), Some("\"a b\"")));
        let one = comparison(&version(Some("1.1"), None, Some("\"x\""))).unwrap();
        assert_eq!((one.version.as_deref(), one.e_tag.as_deref()), (None, Some("\"x\"")));
        for other in ["", "1", "a b", "a - -"] {
            assert!(comparison(&Version::new(other)).is_none(), "{other:?}");
        }
    }
}
