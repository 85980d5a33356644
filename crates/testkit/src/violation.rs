use incumbent_core::store::StoreError;

/// How a store broke a property, in words for whoever writes that store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Violation {
    /// What was done, what came of it and what should have.
    pub message: String,
}

impl Violation {
    /// A violation that reads like this.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// The store failed where nothing should have made it fail.
    #[must_use]
    pub fn failure(doing: &str, error: &StoreError) -> Self {
        Self::new(format!("{doing} failed ({:?}): {error}", error.kind))
    }
}

/// Returns a [`Violation`] with this message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Violation::new(format!($($message)+)));
        }
    };
}

pub(crate) use ensure;
