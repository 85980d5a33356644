use std::fmt;
use std::str::FromStr;

use incumbent::{Assertion, Duty, Leadership, Run, Slot, Term};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but letters, digits and what names are mostly made of.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'/');

/// What else stands as it is in a token: escapes, and what other languages leave as it is.
const PLAIN: &[u8] = b"%-_./~!'()*";

/// The greatest term that there is; databases keep no greater number.
const GREATEST: u64 = i64::MAX as u64;

/// What is shown at a gate: a lease and a term of it. From a `Term`, a `Duty` or a `Run`; over the
/// wire as `lease/term`, the lease percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    lease: String,
    term: u64,
}

impl Token {
    /// Of a lease and a term that came another way, such as `INCUMBENT_TERM` under `incumbent run`.
    /// A term above `i64::MAX` is taken for that.
    #[must_use]
    pub fn new(lease: impl Into<String>, term: u64) -> Self {
        Self { lease: lease.into(), term: term.min(GREATEST) }
    }

    /// The lease's name.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// The term.
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.term
    }

    /// The term as databases like it.
    #[cfg(any(feature = "mysql_async", feature = "rusqlite", feature = "tokio-postgres"))]
    pub(crate) const fn as_i64(&self) -> i64 {
        self.term.cast_signed()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", utf8_percent_encode(&self.lease, ESCAPED), self.term)
    }
}

/// Text that isn't `lease/term`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} isn't a lease and a term, such as scheduler/7")]
pub struct TokenError(String);

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || TokenError(text.chars().take(200).collect());
        // Two headers that a proxy has put into one line are no token.
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || PLAIN.contains(&byte)) {
            return Err(wrong());
        }
        let (lease, term) = text.rsplit_once('/').ok_or_else(wrong)?;
        let lease = percent_decode_str(lease).decode_utf8().map_err(|_| wrong())?;
        let digits = !term.is_empty() && term.bytes().all(|byte| byte.is_ascii_digit());
        let term = term.parse().ok().filter(|term| digits && *term <= GREATEST);
        match term {
            Some(term) if !lease.is_empty() => Ok(Self { lease: lease.into_owned(), term }),
            _ => Err(wrong()),
        }
    }
}

impl From<&Assertion> for Token {
    fn from(assertion: &Assertion) -> Self {
        Self { lease: assertion.lease.clone(), term: assertion.term.max(0).cast_unsigned() }
    }
}

impl From<&Term> for Token {
    fn from(term: &Term) -> Self {
        Self::from(&term.assertion())
    }
}

/// What has a term has its token.
macro_rules! token_of {
    ($($holder:ty),+) => {$(
        impl From<&$holder> for Token {
            fn from(holder: &$holder) -> Self {
                Self::from(&holder.assertion())
            }
        }
    )+};
}

token_of!(Duty, Leadership, Run, Slot);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back_whatever_the_lease_is_called() {
        for lease in ["scheduler", "incumbent/duty/orders/eu, 7", "☃/%2F", "a b\r\nX: y", "/"] {
            let token = Token::new(lease, 7);
            let text = token.to_string();
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(text.parse(), Ok(token), "{text}");
        }
        assert_eq!(Token::new("scheduler", 7).to_string(), "scheduler/7");
        assert_eq!(Token::new("x", u64::MAX).term(), GREATEST);
    }

    #[test]
    fn what_isn_t_a_token_is_refused() {
        let wrong =
            ["", "7", "/7", "x/", "x/-7", "x/+7", "x/ 7", "%ff/7", "x/7/", "x/9223372036854775808"]
                .into_iter()
                .chain(["x/7, x/8", "x/7,x/8", "a b/7", "☃/7", "x\t/7"]);
        for text in wrong {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
