//! Turns `%2F` into `/` and so on, and takes no `%` that means nothing.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The text that this stands for; nothing if it is badly escaped or no UTF-8.
#[must_use]
pub(super) fn decoded(text: &str) -> Option<String> {
    String::from_utf8(decoded_bytes(text)?).ok()
}

/// The bytes that this stands for; nothing if it is badly escaped.
#[must_use]
pub fn decoded_bytes(text: &str) -> Option<Vec<u8>> {
    let is_escape = |after: &str| {
        after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let sound = text.split('%').skip(1).all(is_escape);
    sound.then(|| percent_decode_str(text).collect())
}

/// The text with all escaped that could mean something in a URL.
#[must_use]
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
