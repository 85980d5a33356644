//! Names that become part of SQL text, and names that are too long.

use incumbent_core::store::StoreError;

/// Lets nothing but a plain identifier pass, since it becomes part of SQL text.
///
/// # Errors
///
/// Rejected with what may be used instead.
pub fn check_name(
    parameter: &str,
    name: &str,
    longest: usize,
    example: &str,
) -> Result<(), StoreError> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain && starts && name.len() <= longest {
        return Ok(());
    }
    Err(StoreError::rejected(format!(
        "{parameter}={name:?} can't be used in the names of tables: use up to {longest} letters, \
         digits and underscores, not beginning with a digit, such as {parameter}={example}"
    )))
}

/// What stands between the beginning of a name that was cut and the hash of all of it.
#[cfg(feature = "hash")]
const CUT_MARK: &str = "…sha256:";

/// A name of at most so many bytes: itself, or as many bytes of it as are kept, and a hash.
#[cfg(feature = "hash")]
#[must_use]
pub fn cut(name: &str, longest: usize, kept: usize) -> String {
    use sha2::{Digest as _, Sha256};

    // One that looks as if it had been cut is another name.
    if name.len() <= longest && !name.contains(CUT_MARK) {
        return name.to_owned();
    }
    let kept = (0..=kept.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    let start = name.get(..kept.unwrap_or(0)).unwrap_or_default();
    let digest = Sha256::digest(name.as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{start}{CUT_MARK}{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(41);
        for name in ["", "1a", "a b", "a`b", "a\"b", "a;b", "a'b", "a.b", "é", "a\0", "a-b", &long]
        {
            let error = check_name("prefix", name, 40, "election_").expect_err(name);
            assert!(error.message.contains("such as prefix=election_"), "{error}");
        }
        assert_eq!(check_name("prefix", "Select_1", 40, "election_"), Ok(()));
    }

    #[cfg(feature = "hash")]
    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let one = "é".repeat(1000);
        let two = format!("{one}x");
        let (one, two) = (cut(&one, 255, 181), cut(&two, 255, 181));
        assert_ne!(one, two);
        assert!(one.starts_with(&"é".repeat(90)) && one.len() <= 255, "{}", one.len());
        assert_ne!(cut(&one, 255, 181), one, "a name that looks like a cut one is another");
        assert_eq!(cut("plain", 255, 181), "plain");
    }
}
